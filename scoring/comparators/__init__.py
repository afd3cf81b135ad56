"""Comparators that could be deployed: what a fixed model is worth when it is chosen on other rows than it is scored on.

`grid` reads outcomes of items by models (with `metadata` beside them), `of_run` those of a run; `folds` divides items,
`fixed` chooses fixed models honestly and in hindsight, `routing` tries routers on the same folds by what they see
(`features`), `signal` says how good a signal must be, `frontier` adds cost, `compare` is the whole.
"""
