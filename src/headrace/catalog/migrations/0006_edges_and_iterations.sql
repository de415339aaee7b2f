-- For each relation that a stream table reads, the operators that make it non-monotone in that; tables
-- made before this have none until they are made anew. Rounds of a fixed point, strata skipped.
ALTER TABLE headrace.stream_tables
    ADD COLUMN edges jsonb NOT NULL DEFAULT '{}';
ALTER TABLE headrace.refreshes
    ADD COLUMN iterations integer,
    ADD COLUMN strata_skipped integer NOT NULL DEFAULT 0;
