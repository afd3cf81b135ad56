"""Policies: what chooses a tier, or a model, for one LLM call.

`contract` is the protocol, `features` and `embeddings` are what a trained policy sees, `stored` is a policy's folder,
`loading` finds a policy by its name. The other files are a kind of policy each.
"""
