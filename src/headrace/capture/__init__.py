"""Change capture by triggers, and cuts: what is in a source database at one moment."""
