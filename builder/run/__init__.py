"""One run: its folder, its ledger, its budget.

`folder` makes and opens it for one process at a time, `ledger` is its durable record, `budget` what it may still spend.
"""
