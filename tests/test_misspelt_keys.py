"""A misspelt key of a config is named as what it is, with the nearest that is known, whatever is missing for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from stepdown.builder.config.loading import Config
from stepdown.builder.config.misspelt import unknown_key
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from tests.conftest import Shop, stepdown
from tests.test_bad_input import refused
from tests.workshop import config

Path = tuple[str | int, ...]


def keys(kind: Any, at: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every key that a config may hold, each with the path of what it stands in."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            yield at, name
            yield from keys(info.annotation, (*at, name))
        return
    if is_dataclass(kind):
        yield from ((at, field.name) for field in fields(kind))
    step: Path = ("x",) if getattr(kind, "__origin__", None) is dict else (0,) if hasattr(kind, "__origin__") else ()
    for argument in get_args(kind):
        if argument not in (Ellipsis, NoneType):
            yield from keys(argument, (*at, *step))


def around(path: Path, inner: Any) -> Any:
    for part in reversed(path):
        inner = [inner] if isinstance(part, int) else {part: inner}
    return inner


KEYS = sorted({(at, name) for at, name in keys(Config) if len(name) > 3}, key=str)


def test_the_keys_that_are_tried_are_those_of_a_config() -> None:
    names = {".".join(map(str, (*at, name))) for at, name in KEYS}
    assert names >= {
        "protocol",
        "protocol.pool.tiers.0.models.0.model",
        "protocol.pool.tiers.0.models.0.price.cache_read",
        "protocol.workloads.0.seeds.source",
        "protocol.judge.models",
        "operation.endpoints.x.api_base",
        "operation.budget.calls",
    }


@pytest.mark.parametrize(("at", "name"), KEYS, ids=lambda part: str(part))
def test_a_misspelt_key_is_named_with_the_one_that_was_meant(at: Path, name: str) -> None:
    swapped = f"{name[:-2]}{name[-1]}{name[-2]}" if name[-1] != name[-2] else name[:-1]
    with pytest.raises(BadInput) as refused:
        validated(Config, around(at, {swapped: "x"}))
    assert str(refused.value) == ".".join(map(str, (*at, swapped))) + f": unknown key: did you mean `{name}`?"


def test_a_key_that_is_like_no_other_is_unknown_and_no_more() -> None:
    assert unknown_key(Config, ["protocol", "pool", "colour"]) == "unknown key"


def test_a_misspelt_required_key_is_named_with_its_line(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0]])
    model = settings["protocol"]["pool"]["tiers"][0]["models"][0]
    model["modle"] = model.pop("model")
    line = 1 + next(
        number for number, text in enumerate(shop.write(settings).read_text().splitlines()) if "modle" in text
    )
    words = "protocol.pool.tiers.0.models.0.modle: unknown key: did you mean `model`?"
    refused(shop.build(settings), f"config.yaml:{line}: {words}")


def test_a_misspelt_parameter_and_a_misspelt_model_are_named_too(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0]])
    model = settings["protocol"]["pool"]["tiers"][0]["models"][0]
    model["parameters"] = {"temprature": 0}
    refused(shop.build(settings), "'temprature' is no generation parameter: did you mean `temperature`?")
    model["parameters"] = {}
    settings["operation"]["endpoints"][f"{model['name']}s"] = {}
    refused(shop.build(settings), f"has no model '{model['name']}s': did you mean {model['name']!r}?")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("stauts", "run"), "No such command 'stauts': did you mean 'status'?"),
        (("doctor", "quikstart"), "comes with stepdown: did you mean 'quickstart'? ("),
        (("doctor", "nothing-like-it"), "no config of this name comes with stepdown (agent, "),
    ],
)
def test_a_misspelt_command_or_config_is_answered_with_the_nearest_one(words: tuple[str, ...], told: str) -> None:
    done = stepdown(*words)
    assert (done.code, told in done.err) == (2, True)
