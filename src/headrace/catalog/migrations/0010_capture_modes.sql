-- How changes of a source are captured: by triggers, from the log of the server, or on the way
-- from one to the other; and why not from the log. What is recorded of reading the log is compared
-- with what is found at every cut.
ALTER TABLE headrace.sources
    ADD COLUMN mode text NOT NULL DEFAULT 'TRIGGER'
        CHECK (mode IN ('TRIGGER', 'TRANSITIONING', 'WAL')),
    ADD COLUMN mode_reason text,
    ADD COLUMN followed jsonb;

ALTER TABLE headrace.databases ADD COLUMN following jsonb;
