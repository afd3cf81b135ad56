"""Measures a judge, or recorded judge scores, against human ratings: how much of the bad and of the good does it pass?

`data` reads rated answers. `measure` counts. `choosing` picks scores and thresholds on some conversations and tests
them on others. `study` puts all of this together, and `plot` draws it.
"""
