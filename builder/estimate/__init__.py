"""How many calls a run will take and what they cost, before it is begun.

`arithmetic` is pure; `sizes` finds how long seeds are, of which `playing` plays those that cost nothing; `run_estimate`
puts it together for a config.
"""
