"""The response cache: responses that were paid for, kept by the question that they answer. Many runs may share one.

`question` is what a response depends on, `responses` what is kept for it, `store` where it is kept. `inventory` reads
all entries.
"""
