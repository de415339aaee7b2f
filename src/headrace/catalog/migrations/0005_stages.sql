-- What every stage of a refresh did: way, reason, rows read and written, seconds.
ALTER TABLE headrace.refreshes
    ADD COLUMN stages jsonb NOT NULL DEFAULT '[]';
