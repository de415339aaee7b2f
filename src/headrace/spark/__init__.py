"""Everything that talks to Spark: finding Java, sessions, copying sources, running stages."""
