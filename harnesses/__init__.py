"""One package per workload, each behind the contract in `base`: instances, live episodes, an official predicate.

Nothing outside this folder knows what a workload is about.
"""
