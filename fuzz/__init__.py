"""Random views over random tables under random changes, judged by PostgreSQL and by Spark."""
