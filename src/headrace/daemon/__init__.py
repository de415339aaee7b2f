"""The daemon: one thread ingests cuts and decides; others refresh groups and serve requests."""
