"""A router in front of any OpenAI client: it chooses a model for each call, forwards the call, and keeps what it cost.

`choosing` asks the policy, `upstream` forwards, `journal` keeps calls and spending, `figures` counts, `app` is the
server.
"""
