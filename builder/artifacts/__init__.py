"""The files of a run: rows, evidence, audit queue, manifest, spend. `writing` writes them all.

They are functions of protocol, responses and verdicts only, `spend.json` apart.
"""
