"""A folder of CREATE STREAM TABLE statements, compared with the catalog and brought about."""
