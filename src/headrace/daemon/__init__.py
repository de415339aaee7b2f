"""The daemon: one thread decides; others take in cuts, refresh groups and serve requests."""
