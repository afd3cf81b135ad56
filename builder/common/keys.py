"""Strings that look like a provider's key or another secret, wherever they stand."""

from __future__ import annotations

import re

SHAPES: tuple[tuple[str, str, str], ...] = (
    # What providers hand out: the text that must be there, the shape, the name.
    # A key mixes letters and digits; `sk-toggleable__content` is a class of a style sheet. The look ahead is bounded:
    # a text of nothing but `sk-` costs no more than its length.
    ("sk-", r"\bsk-(?=[A-Za-z0-9_-]{0,64}(?:[A-Za-z][0-9]|[0-9][A-Za-z]))[A-Za-z0-9_-]{16,}", "an API key"),
    ("AIza", r"\bAIza[0-9A-Za-z_-]{30,}", "a Google API key"),
    ("gsk_", r"\bgsk_[A-Za-z0-9]{20,}", "a Groq API key"),
    ("hf_", r"\bhf_[A-Za-z0-9]{20,}", "a Hugging Face token"),
    ("xai-", r"\bxai-[A-Za-z0-9]{20,}", "an xAI API key"),
    ("nvapi-", r"\bnvapi-[A-Za-z0-9_-]{40,}", "an NVIDIA API key"),
    ("pplx-", r"\bpplx-[A-Za-z0-9]{32,}", "a Perplexity API key"),
    ("csk-", r"\bcsk-[A-Za-z0-9]{32,}", "a Cerebras API key"),
    ("fw_", r"\bfw_[A-Za-z0-9]{22,}", "a Fireworks API key"),
    ("tgp_v1_", r"\btgp_v1_[A-Za-z0-9_-]{30,}", "a Together API key"),
    ("ya29.", r"\bya29\.[A-Za-z0-9_-]{30,}", "a Google access token"),
    ("r8_", r"\br8_[A-Za-z0-9]{20,}", "a Replicate token"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}", "a GitHub token"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{30,}", "a GitHub token"),
    ("glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}", "a GitLab token"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{36}", "an npm token"),
    ("pypi-AgEI", r"\bpypi-AgEI[A-Za-z0-9_-]{30,}", "a PyPI token"),
    ("k_live_", r"\b[sr]k_live_[A-Za-z0-9]{20,}", "a Stripe key"),
    ("xox", r"\bxox[abprs]-[A-Za-z0-9-]{10,}", "a Slack token"),
    # Begins where no earlier part of the same token could: else `-eyJ-eyJ...` is read again from each of them.
    ("eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", "a JSON web token"),
    ("PRIVATE KEY-----", r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "a private key"),
)
_COMPILED = tuple((part, re.compile(shape), name) for part, shape, name in SHAPES)


def key_in(text: str) -> str | None:
    """What the first key-shaped string in a text is; None where there is none. The string itself is never repeated.

    >>> key_in("use AKIA" + "A" * 16), key_in("a task-sk-list"), key_in("div.sk-toggleable__content")
    ('an AWS access key', None, None)
    """
    for part, shape, name in _COMPILED:
        if part in text and shape.search(text):
            return name
    return None
