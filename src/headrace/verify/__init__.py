"""Proofs that users run: a stream table recomputed and compared as a bag."""
