"""The search and everything it stands on: records, pool, client, cache, ledger, replay, workers, release, command.

Start at `records` (the vocabulary), then `search` (the algorithm), then `replay` (one trajectory executed).
"""
