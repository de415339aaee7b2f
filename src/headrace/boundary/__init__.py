"""The public boundary: arguments of callers are checked, and failures become HeadraceErrors."""
