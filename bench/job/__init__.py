"""The 113 queries of the Join Order Benchmark as stream tables, over generated data."""
