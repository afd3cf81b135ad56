"""How many calls a run will take and what they cost, before it is begun.

`arithmetic` is pure. `sizes` finds how long seeds are: `playing` plays those that cost nothing, `earlier_run` reads
those of a run that exists. `run_estimate` puts all together for a config.
"""
