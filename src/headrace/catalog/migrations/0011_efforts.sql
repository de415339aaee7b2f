-- What a refresh had before it, what it was expected to take either way, and what it took: from this
-- the next one is chosen. Lines from before this have none.
ALTER TABLE headrace.refreshes ADD COLUMN effort jsonb;

CREATE INDEX ON headrace.refreshes ("table", mode, id) WHERE effort IS NOT NULL;
