"""Measures a judge, or recorded judge scores, against human ratings: what it passes that people reject, and back.

`data` reads rated answers, `measure` counts, `choosing` picks thresholds and scores on one part and tests on the other.
"""
