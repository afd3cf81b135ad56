"""How a run is carried out: workers, addresses, retries, budgets. No label depends on it; any resume may change it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from stepdown.builder.config.validation import Strict


class Endpoint(Strict):
    """How one model is reached."""

    api_base: str | None = None
    """Address of an OpenAI-compatible server. Not set: the provider's own address. It must hold no credentials."""
    api_key: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the environment variable that holds the key."""
    concurrency: int | None = Field(None, ge=1)
    """How many calls of this model may run at once, over all machines; of a local model, on each. Not set: as many as
    there are workers."""
    requests_per_minute: int | None = Field(None, ge=1)
    """How many requests of this model may begin in any 60 seconds, retries included. Not set: no limit."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """How many tokens of this model, prompt and completion, may be used in any 60 seconds. Not set: no limit."""
    timeout: float = Field(120.0, gt=0, le=86_400)
    """How many seconds one call may take."""

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
    """How often a call is tried again after a technical error (a time-out, status 429 or 5xx)."""

    attempts: int = Field(5, ge=1)
    """How many requests one call may take in all. After the last one the trial is technical."""
    first_wait: float = Field(1.0, ge=0, le=86_400)
    """Seconds before the first retry. The wait doubles each time, with some randomness."""
    longest_wait: float = Field(60.0, ge=0, le=86_400)
    """The most seconds between two requests."""


class Budget(Strict):
    """What a run may spend. Once a limit is reached no call begins, and the run stops with work left (exit code 3)."""

    usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """US dollars by list price, over all resumes. Calls that already run may exceed it. Not set: no limit."""
    calls: int | None = Field(None, ge=1)
    """Calls over all resumes, those of the workload's pseudo-models included; never exceeded. Not set: no limit."""
    wall_clock: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds that one process may work on the run. Not set: no limit."""


class ClusterConfig(Strict):
    """A Ray cluster to work on. The run's folder stays where the command runs, on a machine of the cluster."""

    ray: str = Field(min_length=1)
    """`auto`, for the cluster that this machine belongs to, or the address of its head, `HOST:PORT`."""
    resources: dict[str, float] = Field(default_factory=dict)
    """Ray's resources that a node must have, and that each process of stepdown takes of it: `{docker: 1}`. Nodes
    without them are not worked on, nor are nodes that were started with no CPUs."""
    per_node: int | None = Field(None, ge=1)
    """How many instances are in hand on one node at most. Not set: `workers` divided by the nodes there are."""

    @field_validator("ray")
    @classmethod
    def _reached_from_a_node(cls, value: str) -> str:
        if "://" in value:
            raise ValueError("must be `auto` or HOST:PORT: the command runs on a machine of the cluster")
        return value

    @field_validator("resources")
    @classmethod
    def _amounts(cls, value: dict[str, float]) -> dict[str, float]:
        if wrong := [name for name, amount in value.items() if not 0 < amount < float("inf")]:
            raise ValueError(f"{wrong[0]!r} must be more than 0")
        return value


class OperationConfig(Strict):
    """How the run is carried out. No label depends on it; it may change at any resume."""

    workers: int = Field(2, ge=1, le=8192)
    """How many instances are searched at once, over all machines."""
    executor: ClusterConfig | None = None
    """Where `build`, `resume`, `relabel` and `audit repeat` work on instances: `{ray: auto}` is a Ray cluster. Not set,
    and for all other commands: in threads of this process."""
    speculate: int = Field(0, ge=0, le=256)
    """How many trials an instance's search may have executed ahead of itself: those that follow if the one in hand is
    not accepted, on the next tier and the next step. It saves time where models are slow and instances few. Files stay
    the same; what turns out not to be needed is paid for, within the budget, and counted apart."""
    cache: Path | None = None
    """Folder of the response cache, relative to the config. One cache can serve many runs. Not set: `cache` in the
    run's folder."""
    modules: Path | None = None
    """Folder in which a workload or a policy of your own, `module:Class`, is looked for first, relative to the config.
    Not set: the config's own folder. After that come the folder you work in and what is installed."""
    endpoints: dict[str, Endpoint] = Field(default_factory=dict)
    """How each model is reached, by its `name` in the pool. `default` is for models that are not named."""
    retries: Retries = Retries()
    """How often a call is tried again after a technical error."""
    budget: Budget = Budget()
    """What the run may spend before it stops."""

    def endpoint(self, model: str) -> Endpoint:
        return self.endpoints.get(model) or self.endpoints.get("default") or Endpoint()
