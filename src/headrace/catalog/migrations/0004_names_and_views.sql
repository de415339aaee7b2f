-- What a query's names stand for is kept apart from what things are called by now; the views it reads
-- are kept with their texts. A table that is held was suspended by hand.
ALTER TABLE headrace.stream_tables
    ADD COLUMN names jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN views jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN held boolean NOT NULL DEFAULT false;
