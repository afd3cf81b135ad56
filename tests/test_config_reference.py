"""What people and editors are told of a config is what the models that check it take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from stepdown.builder.config.reference import schema
from tests.conftest import ROOT, stepdown

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.fixture(scope="module")
def editor() -> Draft202012Validator:
    """What an editor makes of the printed schema."""
    printed = json.loads(stepdown("schema").out)
    Draft202012Validator.check_schema(printed)
    return Draft202012Validator(printed)


def test_the_page_of_every_key_is_current() -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    assert page == stepdown("schema", "--reference").out, "renew it with `make reference`"


def test_every_key_is_explained_in_a_sentence() -> None:
    made = schema()
    parts = {"Config": made, **made["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, part in parts.items()
        for key, value in part["properties"].items()
        if not value.get("description", "").endswith((".", "?"))
    ]
    assert silent == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_an_editor_accepts_the_configs_that_come_with_stepdown(path: Path, editor: Draft202012Validator) -> None:
    editor.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def misspelt_key(config: dict[str, Any]) -> None:
    config["operation"] = {"wrokers": 2}


def word_for_a_number(config: dict[str, Any]) -> None:
    config["protocol"]["rules"] = {"cascade": "three"}


def no_seeds(config: dict[str, Any]) -> None:
    del config["protocol"]["workloads"][0]["seeds"]


@pytest.mark.parametrize("spoil", [misspelt_key, word_for_a_number, no_seeds])
def test_an_editor_marks_a_mistake(spoil: Callable[[dict[str, Any]], None], editor: Draft202012Validator) -> None:
    config = yaml.safe_load((ROOT / "configs" / "quickstart.yaml").read_text(encoding="utf-8"))
    spoil(config)
    assert not editor.is_valid(config)


def test_a_pool_may_stand_in_the_config_itself(editor: Draft202012Validator) -> None:
    config = yaml.safe_load((ROOT / "configs" / "bfcl.yaml").read_text(encoding="utf-8"))
    pool = yaml.safe_load((ROOT / "configs" / config["protocol"]["pool"]).read_text(encoding="utf-8"))
    config["protocol"]["pool"] = pool
    editor.validate(config)
    del pool["version"]
    assert not editor.is_valid(config)
