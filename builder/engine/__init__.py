"""The search for labels: `search` is the algorithm, pure; `label` carries it out for one instance, `build` for a run.

`replay` executes one trajectory, `calls` makes its calls, `seeds` and `hints` are where a search begins.
"""
