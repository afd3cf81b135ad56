"""Responses that were paid for, kept by the question that they answer, for many runs.

`question` is what a response depends on, `responses` what is kept for it, `store` where it is kept, `inventory` a look
at all of it.
"""
