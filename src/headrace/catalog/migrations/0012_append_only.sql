-- The first epoch in which a source that was declared append-only lost rows; NULL while it did not.
ALTER TABLE headrace.sources ADD COLUMN shrunk_at bigint;
