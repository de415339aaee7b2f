"""The algebra that functions and plans share: scalars, window calls, and what an operator is."""
