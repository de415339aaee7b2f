"""When stream tables are refreshed: schedules and tiers, who is due, retries, shares of workers."""
