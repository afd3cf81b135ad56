"""Traces that other tools recorded, read as trajectories: what was paid for already becomes seeds.

A module a format gives the calls of a file; `chains` puts calls together by their growing prefixes, and `convert` makes
lines of a seed file of them, and counts what it leaves out.
"""
