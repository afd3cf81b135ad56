"""The review page: rendered on the server, served on loopback, with one link for each reviewer.

`gate.py` decides who is let in, `app.py` answers requests, `session.py` has one reviewer's queue and takes verdicts,
`server.py` runs it all. Four modules make what a step looks like: `outline.py` (a case as turns), `windows.py` (how
much of a text), `blocks.py` (its lines) and `styled.py` (its characters). Model output is hostile: it reaches the page
as text only, with invisible characters shown by name.
"""
