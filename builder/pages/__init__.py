"""Pages on loopback: what the review of labels and the view of a run share.

`gate.py` decides who is let in, `server.py` runs an app behind it, `rendering.py` has templates and static files. Four
modules make what text looks like: `turns.py` (messages as turns of numbered texts), `windows.py` (how much of a text),
`blocks.py` (its lines) and `styled.py` (its characters). What models, tools and people wrote is hostile: it reaches a
page as text only, with invisible characters shown by name.
"""
