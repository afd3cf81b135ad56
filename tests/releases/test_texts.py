"""What the gates look for in texts is found in every spelling, and what real benchmarks say passes them."""

from __future__ import annotations

import pytest

from stepdown.builder.common.keys import key_in
from stepdown.releases.texts import Watch, texts_of

WATCH = Watch(names=("claude-opus-4.6", "gpt-5.4", "small-model"))


@pytest.mark.parametrize(
    "text",
    [
        "claude-opus-4.6",
        "Claude Opus 4.6",
        "claude_opus_4_6",
        "claude-opus-4-6",
        "CLAUDE\u2011OPUS\u20114.6",
        "(opus) Claude Opus 4.6!",
    ],
)
def test_a_model_is_named_however_its_name_is_spelt(text: str) -> None:
    assert WATCH.names_in(f"I am {text}, an assistant") == {"claude-opus-4.6"}


@pytest.mark.parametrize("text", ["a small model of the town", "gpt-5.41", "xgpt-5.4", "opus 4.6", "claude opus 4"])
def test_other_words_name_no_model(text: str) -> None:
    assert not WATCH.names_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "see https://example.org/home/page and (http://example.org/Users/12)",
        'GET "https://api.example.org/v2/Users/list"',
        '<div class="sk-toggleable__content sk-estimator-doc-link sk-dashed-wrapped">',
        "#sk-container-id-1 div.sk-parallel-item",
        "cat /testbed/setup.py > /tmp/x",
    ],
)
def test_what_benchmarks_say_passes(text: str) -> None:
    assert list(WATCH.in_message(texts_of({"role": "tool", "content": text}))) == []


@pytest.mark.parametrize("text", ["cp https://example.org/a /home/ann/b", '"https://example.org/a","/home/ann"'])
def test_a_home_beside_an_address_is_found(text: str) -> None:
    assert any("/home/ann" in found for found in WATCH.in_message(texts_of(text)))


@pytest.mark.parametrize(
    "key",
    [
        "sk-or-v1-" + "0a1b" * 16,
        "sk-ant-api03-" + "aB3_" * 20,
        "sk-" + "0123456789abcdef" * 2,
        "nvapi-" + "aB3_" * 12,
        "pplx-" + "aB3d" * 12,
        "csk-" + "ab3d" * 12,
        "npm_" + "aB3d" * 9,
        "sk_live_" + "aB3d" * 6,
        "eyJ" + "hbGc" * 4 + ".eyJ" + "zdWI" * 4 + "." + "aB3d" * 8,
    ],
)
def test_keys_of_providers_and_registries_are_found(key: str) -> None:
    assert key_in(f"export KEY={key}")


@pytest.mark.parametrize("part", ["-eyJ", "eyJ", "sk-", "sk-sk", "eyJaaaaaaaaaa.eyJ", "/home/", "https://a/home/"])
def test_a_long_text_of_beginnings_is_looked_through_once(part: str) -> None:
    """A megabyte, in which a search from each beginning to the end would take hours."""
    text = part * (1_000_000 // len(part))
    list(WATCH.in_message(texts_of(text)))
