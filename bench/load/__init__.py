"""Stream tables under a sustained load of writes, beside PostgreSQL's own materialized views."""
