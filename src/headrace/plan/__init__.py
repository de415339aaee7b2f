"""Plans: trees of frozen operators over weighted rows. Pure: no Spark, no server."""
