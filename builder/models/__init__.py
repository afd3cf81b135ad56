"""One call to one model: retries, rate limits, usage, and what each way of going wrong means.

`client` is what others call. `families` says which of two `roads` a model goes: `direct`, over `connections` of our
own, or by LiteLLM (`provider`). `envelope` reads what came back, `failures` is the table of errors, `rates` keeps
requests and tokens per minute, `prompt_cache` says which parts of a prompt a provider is asked to keep, `local` runs
small models here.
"""

from stepdown.builder.models.client import Client, Completion

__all__ = ["Client", "Completion"]
