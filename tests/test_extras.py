"""Building labels needs none of the extras' libraries: they are asked for where they are used, and named if missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from stepdown.builder.common.extras import require
from stepdown.builder.errors import BadInput
from tests import workshop
from tests.audit.reviewing import review, tight
from tests.conftest import ROOT, Shop, stepdown
from tests.provider import Provider


def test_the_command_starts_without_them() -> None:
    names = "numpy matplotlib jinja2 tiktoken pyarrow"
    code = f"import sys, stepdown.builder.cli.main; print(sorted({{*{names.split()}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_one_that_is_missing_is_named_with_what_to_install() -> None:
    with pytest.raises(BadInput, match=r"needs no_such_library: pip install 'stepdown\[release\]'"):
        require("release", "sys", "no_such_library")


LIBRARIES = {
    *("docker", "fastapi", "jinja2", "matplotlib", "minisweagent", "numpy", "pyarrow", "regex", "statsmodels"),
    *("swebench", "uvicorn"),
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without any extra."""
    for name in [*LIBRARIES, *sys.modules]:
        if name.partition(".")[0] in LIBRARIES:
            monkeypatch.setitem(sys.modules, name, None)


def test_every_command_says_in_one_line_what_it_lacks(
    shop: Shop, provider: Callable[..., Provider], request: pytest.FixtureRequest
) -> None:
    made = workshop.config(provider().url, [[0, 9]], protocol={"audit": {"rate": 1}})
    assert shop.build(made).code == 0
    run = str(shop.run)
    assert stepdown("audit", "sample", run, "--reviewers", "ann").code == 0
    review(shop.run, "ann", tight)
    assert stepdown("audit", "apply", run).code == 0
    rated = shop.folder / "rated.jsonl"
    rated.write_text("{}\n")
    request.getfixturevalue("bare")
    lacking = {
        ("audit", "serve", run): "audit",
        ("audit", "summary", run): "audit",
        ("publish", run, "--out", str(shop.folder / "release")): "release",
        ("report", run): "release",
        ("score", run, str(rated)): "release",
        ("judge", "calibrate", str(rated)): "judge",
    }
    for arguments, extra in lacking.items():
        result = stepdown(*arguments)
        assert result.code == 2, arguments
        assert result.err.strip().endswith(f"pip install 'stepdown[{extra}]'"), (arguments, result.err)
        assert len(result.err.strip().splitlines()) == 1
