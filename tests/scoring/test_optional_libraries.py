"""Building labels needs no library of numbers or plots: they are asked for where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from builder.errors import BadInput
from scoring.needs import require
from tests.conftest import ROOT


def test_the_command_starts_without_them() -> None:
    names = "numpy matplotlib jinja2 tiktoken pyarrow"
    code = f"import sys, builder.cli; print(sorted({{*{names.split()}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_one_that_is_missing_is_named_with_what_to_install() -> None:
    with pytest.raises(BadInput, match=r"needs no_such_library: pip install 'stepdown\[release\]'"):
        require("sys", "no_such_library")
