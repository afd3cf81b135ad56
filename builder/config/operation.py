"""How a run is carried out: workers, addresses, retries, budgets. No label depends on it; any resume may change it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from stepdown.builder.config.validation import Strict


class Endpoint(Strict):
    """How one model is reached."""

    api_base: str | None = None
    """Address of an OpenAI-compatible server, where it is not the provider's own. It holds no credentials."""
    api_key: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the environment variable that holds the key."""
    concurrency: int | None = Field(None, ge=1)
    """Calls of this model under way at once; None: as many as there are workers."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Requests of this model begun in any 60 seconds, retries included; None: no limit of ours."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """Tokens of this model, prompt and completion, in any 60 seconds; None: no limit of ours."""
    timeout: float = Field(120.0, gt=0, le=86_400)
    """Seconds that one call may take."""

    @field_validator("api_base")
    @classmethod
    def _bare(cls, value: str | None) -> str | None:
        if value is not None:
            parts = urlsplit(value)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("must be an http or https address")
            if parts.username or parts.password or parts.query:
                raise ValueError("credentials do not belong into an address: name their variable in `api_key`")
        return value


class Retries(Strict):
    """How technical errors are retried before a trial is technical."""

    attempts: int = Field(5, ge=1)
    """Requests in all for one call."""
    first_wait: float = Field(1.0, ge=0, le=86_400)
    """Seconds before the first retry; doubled each time, with jitter."""
    longest_wait: float = Field(60.0, ge=0, le=86_400)


class Budget(Strict):
    """What a run may spend before it stops with work left. None: without limit."""

    usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """List price of what the run paid, over all resumes; exceeded by the calls in hand at most."""
    calls: int | None = Field(None, ge=1)
    """Calls that the run made, over all resumes, those of the workload's pseudo-models included."""
    wall_clock: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds that one process works on the run."""


class OperationConfig(Strict):
    """How the run is carried out. No label depends on it; it may change at any resume."""

    workers: int = Field(2, ge=1, le=1024)
    """Instances searched at once."""
    cache: Path | None = None
    """Folder of the response cache, relative to the config; None: `cache` in the run's folder. One serves many runs."""
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)
    """By the pool's model name; `default` for those that are not named."""
    retries: Retries = Retries()
    budget: Budget = Budget()

    def endpoint(self, model: str) -> Endpoint:
        return self.endpoints.get(model) or self.endpoints.get("default") or Endpoint()
