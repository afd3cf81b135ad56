"""Looking at runs, caches and this machine: why a label is what it is, what changed between two runs, what they cost.

Also what a new version takes from an old run, and what of a cache no run needs.
"""
