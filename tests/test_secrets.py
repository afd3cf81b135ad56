"""Values of key variables are taken out of texts, in every form in which they stand there."""

from __future__ import annotations

import json

import pytest

from stepdown.builder.common.secrets import Secrets

KEY = 's+0123456789/"='


@pytest.mark.parametrize("text", [KEY, f"Bearer {KEY}", json.dumps({"key": KEY}), "?key=s%2B0123456789%2F%22%3D"])
@pytest.mark.parametrize("variable", ["SOME_API_KEY", "PLAIN"])
def test_a_key_is_taken_out_however_it_is_written(monkeypatch: pytest.MonkeyPatch, text: str, variable: str) -> None:
    monkeypatch.setenv(variable, f" {KEY} ")
    secrets = Secrets()
    secrets.know(["PLAIN"])
    for bare in (secrets.hidden(text), secrets.removed(text), secrets.line(text)):
        assert "0123456789" not in bare
        assert f"[{variable}]" in bare


def test_a_placeholder_is_taken_out_of_errors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "none")
    assert Secrets().removed("none of them") == "none of them"
    assert Secrets().hidden("none of them") == "[SOME_API_KEY] of them"


def test_other_variables_are_words_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN", "a-value-of-no-secret")
    assert Secrets().hidden("a-value-of-no-secret") == "a-value-of-no-secret"
