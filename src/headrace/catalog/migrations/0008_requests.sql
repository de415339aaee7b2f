-- What was asked of the holder of the lease: how far it is, whether it shall stop, and under which
-- lease it was begun, so that what a holder left behind can be told from what the next one does.
-- What travels is json, not jsonb: it comes back as it was sent, in its order and to the letter.
ALTER TABLE headrace.requests
    ADD COLUMN progress json,
    ADD COLUMN cancel boolean NOT NULL DEFAULT false,
    ADD COLUMN fence bigint,
    ALTER COLUMN command TYPE json,
    ALTER COLUMN result TYPE json,
    ALTER COLUMN error TYPE json,
    DROP CONSTRAINT requests_state_check,
    ADD CONSTRAINT requests_state_check
        CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled'));

CREATE INDEX ON headrace.requests (id) WHERE state = 'running';

-- Whether the holder takes requests, and the session that has its lock: the lease is alive while
-- that session has it.
ALTER TABLE headrace.lease
    ADD COLUMN serves boolean NOT NULL DEFAULT false,
    ADD COLUMN backend integer;
