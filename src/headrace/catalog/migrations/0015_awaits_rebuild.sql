-- Whether a suspended stream table is rebuilt by its next refresh, since a column of a source has a
-- wider type. Until now the end of the reason said so.
ALTER TABLE headrace.stream_tables ADD COLUMN awaits_rebuild boolean NOT NULL DEFAULT false;
UPDATE headrace.stream_tables SET awaits_rebuild = true
WHERE status = 'SUSPENDED' AND reason LIKE '%, which is wider';
