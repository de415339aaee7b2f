"""Commands as data: performed by this process, or by the daemon that holds the writer lease."""
