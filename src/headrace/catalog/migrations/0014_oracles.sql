-- Who gave the answer that a stream table was compared with: Spark from the stored inputs, or
-- PostgreSQL in the snapshot of a cut.
ALTER TABLE headrace.receipts ADD COLUMN oracle text NOT NULL DEFAULT 'spark';
