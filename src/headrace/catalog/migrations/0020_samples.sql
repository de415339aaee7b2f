-- Which rows of a stream table were compared, where not all of them were.
ALTER TABLE headrace.receipts ADD COLUMN covered jsonb;
