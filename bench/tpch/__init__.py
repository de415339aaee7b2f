"""TPC-H: the 22 queries as published, kept fresh over changes of all eight tables."""
