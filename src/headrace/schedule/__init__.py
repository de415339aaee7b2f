"""Scheduling of refreshes: schedules and tiers, due groups, retries, shares of workers."""
