"""Where a model is asked, and with which key: by the config, the environment, or what its provider documents."""

from __future__ import annotations

import os
from typing import Any

from stepdown.builder.config.operation import Endpoint
from stepdown.builder.config.pool import LOCAL, Model
from stepdown.builder.errors import RunStopped
from stepdown.builder.models.failures import shown_address
from stepdown.builder.models.families import Family, family_of
from stepdown.builder.models.local import Runtime

_NO_KEY = "none"
"""Sent as the key to an address of the user's own where no key is named. Keys that are set for others are not sent."""
_LOOPBACK = "http://127.0.0.1"


def open_address(model: Model, endpoint: Endpoint, family: Family | None, runtime: Runtime) -> dict[str, Any]:
    """Where a request goes, with the key that the environment holds now: its `model`, `api_base` and `api_key`. What a
    config does not say is left out for LiteLLM to find. Starts a local model's server. Raises RunStopped: no key.
    """
    if model.model.startswith(LOCAL):
        server = runtime.start(model)
        name = model.model.removeprefix(LOCAL)
        return {"model": f"openai/{name}", "api_base": f"{server.url}/v1", "api_key": server.key}
    address: dict[str, Any] = {"model": model.model}
    if base := endpoint.api_base or (family and family.address()):
        address["api_base"] = base
    elif family:
        raise RunStopped(f"model {model.name!r}, {model.model}: it has no address: set its `api_base`")
    if endpoint.api_key:
        address["api_key"] = _key(model, endpoint.api_key)
    elif endpoint.api_base:
        address["api_key"] = _NO_KEY
    elif family:
        address["api_key"] = _own_key(model, family)
    return address


def known_address(model: Model, endpoint: Endpoint) -> str | None:
    """Where a model is asked, as far as is known before it is; None: at its provider's own address."""
    if model.model.startswith(LOCAL):
        return _LOOPBACK
    family = family_of(model)
    return endpoint.api_base or (family.address() if family else None)


def place(model: Model, endpoint: Endpoint) -> str:
    """Where a model is asked, for a person to read: its address without credentials, or who serves it."""
    if model.model.startswith(LOCAL):
        return "this machine"
    return shown_address(endpoint.api_base) if endpoint.api_base else model.model.split("/")[0]


def _key(model: Model, variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise RunStopped(f"the environment variable {variable} is not set; {model.name!r} needs its key")
    if not (key.isascii() and key.isprintable()):
        raise RunStopped(f"the environment variable {variable} is no key: it holds what no request can carry")
    return key


def _own_key(model: Model, family: Family) -> str:
    variable = next((name for name in family.key_variables if os.environ.get(name, "").strip()), None)
    if variable:
        return _key(model, variable)
    if family.needs_key:
        named = " or ".join(family.key_variables[:1])
        raise RunStopped(
            f"model {model.name!r}, {model.model}: no key is set: set {named}, or name its variable in `api_key`"
        )
    return _NO_KEY
