"""The review page: server-rendered, on loopback, for one reviewer per link.

`gate.py` says who may ask, `app.py` what is answered, `session.py` what may be said; `server.py` runs it. What a step
looks like is made by `outline.py` (a case into turns), `windows.py` (how much of a text), `blocks.py` (its lines) and
`pieces.py` (its characters). Model output is hostile: it reaches the page as text only, unseen characters by name.
"""
