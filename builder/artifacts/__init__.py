"""The files of a run: rows, evidence, audit queue, manifest, spend. `writing` writes them all.

`rows` has the record of a row, `reading` reads such files whoever made them, `labelled` makes rows from a run's ledger.
The files are functions of protocol, responses and verdicts only, `spend.json` apart.
"""
