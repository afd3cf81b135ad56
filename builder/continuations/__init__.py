"""Frozen prefixes continued by several models under variants of their messages, each to its end, in a live environment.

`plan` says what is continued, `checkpoints` freezes the prefixes, `variants` is what a model is shown of one, `cells`
are the executions and their record, `executing` carries one out, `store` keeps them, `run` is the whole.
"""
