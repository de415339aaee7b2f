-- How often in a row a table's refresh failed, and how often publishing scanned its served table:
-- what the server counts beyond that are reads of others. In the history: which tables were
-- refreshed as one.
ALTER TABLE headrace.stream_tables
    ADD COLUMN failures integer NOT NULL DEFAULT 0,
    ADD COLUMN own_scans bigint NOT NULL DEFAULT 0;
ALTER TABLE headrace.refreshes
    ADD COLUMN "group" text[] NOT NULL DEFAULT '{}';
