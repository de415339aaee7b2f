-- The default collation of the home database when the query of a stream table was bound.
ALTER TABLE headrace.stream_tables ADD COLUMN default_collation text NOT NULL DEFAULT 'other';
