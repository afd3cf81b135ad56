"""The dynamic track: policies execute tasks live, and their bills are compared on the same tasks (paper, live track).

`prompt_caches` says what a provider's cache would hold, `driving` executes a task, `store` keeps every step, `run` is
the whole, `bill` adds it up, `export` writes what TwinRouterBench's own scorer reads.
"""
