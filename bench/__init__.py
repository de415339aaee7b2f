"""Measurements. Each ends with one JSON object on its last line."""
