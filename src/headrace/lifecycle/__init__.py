"""Create, alter, rebuild, repair and drop stream tables, each all or nothing."""
