"""The first copy of a source, beside PostgreSQL's COPY and Spark's JDBC reader."""
