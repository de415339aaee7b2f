"""Change capture from the write-ahead log: what a replication slot sends, as rows with weights."""
