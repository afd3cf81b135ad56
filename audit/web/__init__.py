"""The review page: rendered on the server, served on loopback, with one link for each reviewer.

`app.py` answers requests, `session.py` has one reviewer's queue and takes verdicts, `outline.py` makes a case into
turns, `server.py` runs it all behind the gate of `builder/pages/`, which also makes what texts look like.
"""
