"""Strings that look like a provider's key or another secret, wherever they stand."""

from __future__ import annotations

import re

SHAPES: tuple[tuple[str, str, str], ...] = (
    # What providers hand out: the text that must be there, the shape, the name.
    ("sk-", r"\bsk-[A-Za-z0-9_-]{16,}", "an API key"),
    ("AIza", r"\bAIza[0-9A-Za-z_-]{30,}", "a Google API key"),
    ("gsk_", r"\bgsk_[A-Za-z0-9]{20,}", "a Groq API key"),
    ("hf_", r"\bhf_[A-Za-z0-9]{20,}", "a Hugging Face token"),
    ("xai-", r"\bxai-[A-Za-z0-9]{20,}", "an xAI API key"),
    ("r8_", r"\br8_[A-Za-z0-9]{20,}", "a Replicate token"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}", "a GitHub token"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{30,}", "a GitHub token"),
    ("glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}", "a GitLab token"),
    ("xox", r"\bxox[abprs]-[A-Za-z0-9-]{10,}", "a Slack token"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", "a JSON web token"),
    ("PRIVATE KEY-----", r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "a private key"),
)
_COMPILED = tuple((part, re.compile(shape), name) for part, shape, name in SHAPES)


def key_in(text: str) -> str | None:
    """What the first key-shaped string in a text is; None where there is none. The string itself is never repeated.

    >>> key_in("use AKIA" + "A" * 16), key_in("a task-sk-list")
    ('an AWS access key', None)
    """
    for part, shape, name in _COMPILED:
        if part in text and shape.search(text):
            return name
    return None
