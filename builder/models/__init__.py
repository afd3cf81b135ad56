"""One call to one model through LiteLLM: retries, rate limits, usage, and the error table.

`calls` makes the call; `errors` says what each way of going wrong means.
"""

from stepdown.builder.models.client import Client, Completion

__all__ = ["Client", "Completion"]
