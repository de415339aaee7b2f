"""What a project looks like: status, lag, health, groups, strata. Reads all, writes nothing."""
