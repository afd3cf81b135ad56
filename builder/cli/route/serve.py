"""`stepdown route serve`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.common.extras import require
from stepdown.builder.common.signals import handle_end_signals
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import WORKLOAD, Pool
from stepdown.builder.config.validation import read_yaml, validated
from stepdown.builder.errors import BadInput

NEEDED = ("fastapi", "httpx", "numpy", "prometheus_client", "uvicorn")


@click.command("serve")
@click.argument("policy")
@click.option(
    "--pool",
    "pool_file",
    type=click.Path(path_type=Path),
    required=True,
    help="The models: a pool file, or a config, whose `operation.endpoints` then say where they are.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs --key-env.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one")
@click.option("--key-env", help="Name of the variable with the key that clients have to send; several with commas.")
@click.option("--log", type=click.Path(path_type=Path), help="Keep every call, with its texts, in this JSONL file.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="Forward no call once this much is spent.")
def command(
    policy: str,
    pool_file: Path,
    host: str,
    port: int,
    key_env: str | None,
    log: Path | None,
    budget_usd: float | None,
) -> None:
    """Serve the models of a pool behind one OpenAI-compatible address; POLICY chooses the model of each call.

    POLICY is a policy's folder, a YAML file of a model to ask, always:TIER, chance, rules, uncommon-route or
    module:Class (code of yours, which runs here). A client that asks for the model `auto` is
    routed; one that names a model of the pool gets that one. Where a model can not be reached, its tier's others are
    asked, then dearer tiers, then cheaper ones; a call that the provider refuses goes back to the client as it is.

    \b
      /v1/chat/completions   streamed or whole; x-stepdown-model says who answered
      /v1/models, /health, /metrics (for Prometheus)

    With --log, spending goes on where the file's lines end, and `stepdown seeds convert` reads it. Ctrl-C ends it.
    """
    require("route", *NEEDED)
    from stepdown.routing.policies.contract import NoChoice, View
    from stepdown.routing.policies.loading import load_policy
    from stepdown.routing.serve.running import serve

    pool, operation = _pool_and_operation(pool_file)
    keys = _keys(key_env)
    if host not in ("127.0.0.1", "localhost", "::1") and not keys:
        raise BadInput(
            "an address that other machines reach needs a key: name its variable by --key-env", field="--host"
        )
    console.name_policy_code(policy)
    loaded = load_policy(policy)
    with suppress(NoChoice):  # what it makes of an empty call is its own; other tiers, or a key refused, are told now
        loaded.choose(View(({"role": "user", "content": ""},), tiers=tuple(tier.name for tier in pool.tiers)))
    with serve(loaded, pool, operation, host, port, keys, log, budget_usd) as server, handle_end_signals(server.stop):
        click.echo(f"http://{server.address}/v1")
        told = f"policy {loaded.name}; ask for the model `auto`, or for one of {', '.join(pool.by_name)}"
        click.echo(printable(told, 2000), err=True)
        click.echo("Ctrl-C ends it, after the calls in progress" + ("" if keys else "; no key is needed"), err=True)
        server.wait()


def _pool_and_operation(file: Path) -> tuple[Pool, OperationConfig]:
    data = read_yaml(file)
    if "protocol" in data:
        config = load_config(file)
        pool, operation = config.protocol.pool, config.operation
    else:
        pool, operation = validated(Pool, data, file=file), OperationConfig()
    for _, model in pool.models():
        if model.model.startswith(WORKLOAD):
            raise BadInput(f"{model.name!r} is a workload's pseudo-model: nobody can ask it", file=file, field="pool")
    return pool, operation


def _keys(variables: str | None) -> list[str]:
    """The keys that clients may have. Raises BadInput where a variable is not set."""
    keys = []
    for name in filter(None, map(str.strip, (variables or "").split(","))):
        key = os.environ.get(name, "").strip()
        if not key:
            raise BadInput(f"the environment variable {name} is not set", field="--key-env")
        keys.append(key)
    return keys
