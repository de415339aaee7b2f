"""Change capture by triggers, and cuts: the contents of a source database at one moment."""
