"""Stream tables come and go: create and drop, each all or nothing."""
