"""The 99 queries of TPC-DS as stream tables, under changes of all 24 tables."""
