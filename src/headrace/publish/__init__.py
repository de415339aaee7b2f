"""The publishing transaction: served tables and the catalog move together."""
