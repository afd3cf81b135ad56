"""A run as pages: what happened in it, step by step and trial by trial. Read-only, also while a build works on it.

`app.py` answers requests and `server.py` runs it behind the gate of `builder/pages/`. `shown_run.py` is what all pages
know of the run; `listing.py`, `timeline.py`, `trial.py` and `difference.py` make a page each, `reading.py` the texts
in them, within a bound.
"""
