"""The static track: predicted tiers held against labels, what they would have cost, and what chance and fixed tiers do.

`steps` streams trajectories, `accounting` prices them, `tally` adds them up, `score` is the whole.
"""
