"""Replication slots and publications that capture leaves in a database."""

from __future__ import annotations

LEFT = """
SELECT slot_name FROM pg_replication_slots WHERE database = current_database()
UNION ALL SELECT pubname FROM pg_publication
"""
