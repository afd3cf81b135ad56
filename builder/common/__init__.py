"""Small things that every layer may use: text, whole files, SQLite files, tables, tokens, intervals, extras.

Nothing here knows what a label is.
"""
