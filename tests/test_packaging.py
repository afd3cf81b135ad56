"""What a user without a checkout has: a wheel, built from a source distribution and installed elsewhere.

The environment is a new one. The libraries that stepdown depends on are those of the environment that runs the tests,
put on its path; stepdown itself is the wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
import yaml

from stepdown.builder.common.extras import parts
from tests.conftest import ROOT

NOT_SOURCES = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    ".labelstudio",
    "build",
    "runs",
    "*.egg-info",
    "__pycache__",
    "tests",
    "benchmarks",
    "docs",
    "upstream",
)
CODE = ("audit", "builder", "harnesses", "judges", "releases", "reports", "scoring")
GENERIC_NAMES = (*CODE, "configs", "data", "requirements")
"""Folders of the checkout, none of which may be a name that is installed."""
BUILD = "import sys, setuptools.build_meta as backend; getattr(backend, sys.argv[1])(sys.argv[2])"


BUILDS_HERE = int(version("setuptools").partition(".")[0]) >= 77
"""Whether the environment's own setuptools builds stepdown; else pip fetches one."""


def wheel_of(source: Path, folder: Path) -> Path:
    """The wheel that pip builds from a folder of sources."""
    offline = ["--no-build-isolation"] if BUILDS_HERE else []
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *offline, "--wheel-dir", str(folder)]
    subprocess.run([*words, str(source)], check=True, cwd=folder.parent)
    (wheel,) = folder.glob("*.whl")
    return wheel


def copied_sources(folder: Path) -> Path:
    """The checkout without what is no source: setuptools writes into the folder it builds from."""
    target = folder / "checkout"
    shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    return target


def made_by_setuptools(what: str, source: Path, folder: Path) -> Path:
    """The file that a hook of setuptools makes of sources."""
    folder.mkdir()
    words = [sys.executable, "-c", BUILD, what, str(folder)]
    subprocess.run(words, cwd=source, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def files_in(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return wheel_of(copied_sources(folder), folder / "dist")


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel."""

    bin: Path
    site_packages: Path

    def run(
        self, *words: str, at: Path, code: int = 0, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A program of the environment, run in a folder outside the checkout."""
        process = self.started(*words, at=at, environment=environment)
        out, err = process.communicate()
        assert process.returncode == code, out + err
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def started(self, *words: str, at: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The same, while it runs."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return subprocess.Popen(
            [str(self.bin / words[0]), *words[1:]],
            cwd=at,
            env=outside | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("clean") / "environment"
    venv.create(place)
    made = Installed(
        place / "bin", place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    )
    pip = [sys.executable, "-m", "pip", "--python", str(made.bin / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    # A line of a .pth is a folder to look into; the .pth files in that folder, an editable stepdown's, are not read.
    libraries = [folder for folder in sys.path if folder.endswith("site-packages")]
    (made.site_packages / "libraries.pth").write_text("".join(f"{folder}\n" for folder in libraries))
    return made


needs_setuptools = pytest.mark.skipif(
    not BUILDS_HERE, reason="setuptools is older than the one that builds stepdown: make test installs it"
)


@needs_setuptools
def test_an_editable_install_puts_one_name_on_the_path(tmp_path: Path) -> None:
    source = copied_sources(tmp_path)
    with zipfile.ZipFile(made_by_setuptools("build_editable", source, tmp_path / "editable")) as made:
        (line,) = (made.read(name).decode().strip() for name in made.namelist() if name.endswith(".pth"))
    assert Path(line).is_relative_to(source), "a folder, which type checkers follow, and no import hook"
    assert [entry.name for entry in Path(line).iterdir() if entry.suffix != ".egg-info"] == ["stepdown"]


@needs_setuptools
def test_a_wheel_from_the_source_distribution_is_that_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(made_by_setuptools("build_sdist", copied_sources(tmp_path), tmp_path / "sdists")) as unpacked:
        unpacked.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert files_in(wheel_of(source, tmp_path / "dist")) == files_in(wheel)


def test_the_wheel_holds_one_package_and_all_that_a_user_needs(wheel: Path) -> None:
    names = files_in(wheel)
    assert {name.partition("/")[0] for name in names} == {"stepdown"}
    for folder, pattern in (
        ("configs", "*.yaml"),
        ("configs/pools", "*.yaml"),
        ("data", "*.jsonl"),
        ("examples", "*.py"),
    ):
        expected = {f"stepdown/{folder}/{file.name}" for file in (ROOT / "stepdown" / folder).glob(pattern)}
        assert expected
        assert expected <= names
    named = {"base.txt", "full.txt", "parts.json"}.union(*(part.files for part in parts().values()))
    pins = {f"stepdown/requirements/{name}" for name in named}
    assert {name for name in names if name.startswith("stepdown/requirements/")} == pins
    assert "stepdown/py.typed" in names


def test_the_wheel_holds_every_file_of_the_code(wheel: Path) -> None:
    files = {file.relative_to(ROOT) for folder in CODE for file in (ROOT / folder).rglob("*") if file.is_file()}
    code = {f"stepdown/{file}" for file in files if "__pycache__" not in file.parts}
    assert len(code) > 200
    assert code - files_in(wheel) == set()


def test_no_folder_of_the_checkout_is_an_installed_name(installed: Installed, tmp_path: Path) -> None:
    code = (
        "import inspect, stepdown; from importlib.util import find_spec\n"
        f"print([name for name in {GENERIC_NAMES} if find_spec(name)])\n"
        "print(stepdown.__file__, inspect.getsourcefile(stepdown.Harness), sep='\\n')"
    )
    names, *files = installed.run("python", "-c", code, at=tmp_path).stdout.splitlines()
    assert names == "[]"
    assert all(Path(file).is_relative_to(installed.site_packages) and Path(file).is_file() for file in files)


def test_help_and_doctor_name_only_what_is_there(installed: Installed, tmp_path: Path) -> None:
    help_text = installed.run("stepdown", "--help", at=tmp_path).stdout
    doctor = installed.run("stepdown", "doctor", at=tmp_path).stdout
    named = re.findall(r"(?<!\S)/\S+|(?<!\S)(?:configs|requirements|data)/\S+", help_text + doctor)
    assert named, "doctor says where the bundled configs are"
    assert [name for name in named if not Path(name).exists()] == []
    for name in re.findall(r"stepdown (?:estimate|build) ([\w.-]+)", help_text):
        assert (installed.site_packages / "stepdown" / "configs" / f"{name}.yaml").is_file()


def test_a_bundled_config_is_labelled_and_its_run_looked_at(installed: Installed, tmp_path: Path) -> None:
    installed.run("stepdown", "estimate", "example", at=tmp_path)
    installed.run("stepdown", "build", "example", "--run", "runs/e", at=tmp_path)
    status = installed.run("python", "-m", "stepdown", "status", "runs/e", at=tmp_path).stdout
    assert "labels of till: 10 low, 3 high" in status
    installed.run("stepdown", "explain", "runs/e", "till/bill-1/2", at=tmp_path)


@pytest.mark.local
def test_an_empty_folder_comes_to_a_scored_release(installed: Installed, tmp_path: Path) -> None:
    """By the wheel, as after `stepdown install local` and `pip install 'stepdown[audit,release]'`."""
    installed.run("stepdown", "init", "--kind", "qa", "--sample", at=tmp_path)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(questions.read_text().splitlines(keepends=True)[:3]))
    installed.run("stepdown", "build", "run.yaml", "--run", "runs/first", at=tmp_path)
    view = installed.started("stepdown", "view", "runs/first", at=tmp_path)
    assert view.stdout is not None
    link = view.stdout.readline().strip()
    assert "qa/capital-france" in httpx.get(link, follow_redirects=True).text
    view.send_signal(signal.SIGINT)
    assert view.wait(60) == 0
    installed.run("stepdown", "publish", "runs/first", "--out", "releases/first", "--creator", "Me", at=tmp_path)
    assert installed.run("stepdown", "verify", "releases/first", at=tmp_path).stdout.startswith("ok: 3 rows of 3")
    score = installed.run("stepdown", "score", "releases/first", "--policy", "always:high", at=tmp_path).stdout
    assert re.search(r"^always:high +100\.00 ", score, re.MULTILINE), score


def test_sample_questions_are_found_by_their_bundled_config(installed: Installed, tmp_path: Path) -> None:
    assert "workload qa" in installed.run("stepdown", "doctor", "qa-quickstart", at=tmp_path).stdout


def test_pins_are_installed_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    command = installed.run("stepdown", "install", "bfcl", "--dry-run", at=tmp_path).stdout.split()
    files = [Path(word) for word in command if word.endswith(".txt")]
    assert files
    assert all(file.is_relative_to(installed.site_packages) and file.is_file() for file in files)
    assert command[0] == str(installed.bin / "python")


@pytest.mark.parametrize("module", ["scoring", "builder"])
def test_a_users_module_is_the_users_whatever_its_name(installed: Installed, tmp_path: Path, module: str) -> None:
    example = (ROOT / "stepdown/examples/till.py").read_text()
    (tmp_path / f"{module}.py").write_text(example.replace('name = "till"', 'name = "mine"'))
    config = yaml.safe_load((ROOT / "configs/example.yaml").read_text())
    config["protocol"]["workloads"][0]["harness"] = f"{module}:Till"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config))
    installed.run("stepdown", "build", "mine.yaml", "--run", "run", at=tmp_path)
    assert "labels of mine: 10 low" in installed.run("stepdown", "status", "run", at=tmp_path).stdout


def test_a_module_of_a_folders_name_on_the_path_breaks_nothing(installed: Installed, tmp_path: Path) -> None:
    for name in GENERIC_NAMES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)\n")
    installed.run(
        "stepdown", "build", "example", "--run", "run", at=tmp_path, environment={"PYTHONPATH": str(tmp_path)}
    )


def test_the_pages_examples_run_where_it_is_installed(installed: Installed, tmp_path: Path) -> None:
    code = "import doctest, stepdown; found = doctest.testmod(stepdown); print(found.failed, found.attempted > 5)"
    assert installed.run("python", "-c", code, at=tmp_path).stdout.endswith("0 True\n")


def test_type_checkers_see_the_types(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import stepdown\n\n"
        "tier: str = next(stepdown.read_rows('runs/q')).target_tier\n"
        "count: str = stepdown.build('example', 'runs/e').status().errors_retried\n"
    )
    words = ["-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "mine.py"]
    words += ["--python-executable", str(installed.bin / "python")]
    found = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True).stdout
    wrong = 'mine.py:4: error: Incompatible types in assignment (expression has type "int", variable has type "str")'
    assert found.splitlines()[0].startswith(wrong), found
    assert "Found 1 error in 1 file" in found
