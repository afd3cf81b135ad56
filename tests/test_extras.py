"""Building labels needs none of the extras' libraries: they are asked for where they are used, and named if missing."""

from __future__ import annotations

import pkgutil
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from click import Command

from stepdown.builder import cli
from stepdown.builder.cli.main import COMMANDS
from stepdown.builder.common.bundled import CONFIGS, PINS
from stepdown.builder.common.extras import parts, require
from stepdown.builder.config.loading import load_config
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


def test_what_is_installed_by_pins_is_named_with_its_command() -> None:
    with pytest.raises(BadInput, match=r"needs no_such_library: stepdown install swebench$"):
        require("swebench", "no_such_library")


def test_install_says_what_it_would_run_for_every_pinned_part() -> None:
    for part in parts():
        result = stepdown("install", part, "--dry-run")
        files = [Path(word) for word in shlex.split(result.out) if word.endswith(".txt")]
        assert result.code == 0
        assert files
        assert all("--hash=sha256:" in file.read_text() for file in files)


def test_install_refuses_a_part_that_it_does_not_know() -> None:
    result = stepdown("install", "everything")
    assert (result.code, result.err) == (2, f"stepdown: no such part 'everything': {', '.join(parts())}\n")


def test_no_pin_names_where_it_is_downloaded_from() -> None:
    for file in PINS.glob("*.txt"):
        assert "://" not in file.read_text(), file


def test_help_lists_the_commands_that_there_are() -> None:
    modules = {name for _, name, _ in pkgutil.iter_modules(cli.__path__)}
    commands = {
        name for name in modules if isinstance(vars(import_module(f"{cli.__name__}.{name}")).get("command"), Command)
    }
    assert {name.rstrip("_") for name in commands} == set(COMMANDS)
    shown = stepdown("--help").out
    for name, line in COMMANDS.items():
        assert f"\n  {name}  " in shown
        assert line.endswith("."), "a line of the list is a whole sentence"


def test_a_bundled_config_goes_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(Path("qa")) == load_config(CONFIGS / "qa.yaml")
    Path("qa").write_text("protocol: mine\n")
    with pytest.raises(BadInput, match="qa: protocol:"):
        load_config(Path("qa"))
    with pytest.raises(BadInput, match=r"quickstrat: no such file, and no config of this name .*quickstart"):
        load_config(Path("quickstrat"))
