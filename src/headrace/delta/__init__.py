"""Change, before and after of a plan. Pure."""
