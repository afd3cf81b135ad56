"""Somebody's own agent program, run as it is: its LLM calls come to an address of ours and are the steps.

`harness` opens episodes; `episode` is one of them. `exchange` holds requests until they are answered, `address` serves
them over HTTP. `process` and `container` run programs, `grading` says what came of them.
"""
