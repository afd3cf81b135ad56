"""The search for labels: `search` is the algorithm, pure; `label` carries it out for one instance, `build` for a run.

`trials` executes and records trials, each once; `replay` is one trajectory executed, `calls` its calls. `seeds`,
`seed_finder` and `hints` are where a search begins. `session` has workers do any work on a run's instances.
"""
