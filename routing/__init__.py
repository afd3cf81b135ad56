"""From labels to a router that runs: policies, how they are trained and scored, served and tried live.

`policies` is the protocol and every kind of policy; `training` makes one from labels; `scores` holds policies against
released rows. A policy never decides a label.
"""
