"""Judges are examined: answers known to be good are made wrong by code, and a judge is asked about both, unmarked.

`library` has the good answers, `mutations` and `figures` make wrong ones of them, `probes` are the questions. `asking`
puts them to judges, `tally` counts and says when a judge has fallen below its bar, `watch` does so in a run.
"""
