"""A refresh as a list of steps: planned without side effects, then run or explained."""
