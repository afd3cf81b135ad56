"""The audit in step with a server where people review: sampled steps go there, their answers come back.

`link` says which server; `base` what each of them can do; a module per tool does it. `exchange` has the records, and
checks every answer as it checks a file's.
"""
