"""Queries of a benchmark as stream tables of one project, each compared with PostgreSQL."""
