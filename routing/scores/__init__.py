"""Policies held against labelled rows: what each predicts, what it scores, and how two differ on the same rows."""
