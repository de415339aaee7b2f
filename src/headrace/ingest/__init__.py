"""A cut of the sources becomes an epoch of their relations."""
