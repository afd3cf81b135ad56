"""The map in docs/architecture.md is the code's: the same layers in the same order, and every folder on it."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The places that each row of the table under a heading names."""
    part = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", row) for row in rows]


def place(module: str) -> str:
    """Where a module of the installed package lies in the repository."""
    path = module.removeprefix("stepdown.").replace(".", "/")
    if not any((ROOT / found).exists() for found in (path, f"{path}.py")):
        path = f"stepdown/{path}"  # no link, but a module of the page that programs import
    return f"{path}/" if (ROOT / path).is_dir() else f"{path}.py"


def test_the_page_has_the_layers_that_the_imports_are_checked_against() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    assert table("Layers") == [[place(module) for module in layer.split(" : ")] for layer in layers]


def test_every_module_of_the_code_belongs_to_a_layer() -> None:
    """What import-linter is not told of, it does not check."""
    layers = tuple(place for row in table("Layers") for place in row)
    folders = {layer.split("/")[0] for layer in layers} - {"stepdown"}
    files = [str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")]
    files += [f"stepdown/{path.name}" for path in (ROOT / "stepdown").glob("*.py")]
    assert len(files) > 200
    outside = {file for file in files if not file.startswith(layers)}
    assert outside == {"builder/__init__.py", "routing/__init__.py", "stepdown/__init__.py", "stepdown/__main__.py"}


def test_every_folder_of_the_repository_is_on_the_page() -> None:
    layers = {place.split("/")[0] for row in table("Layers") for place in row}
    beside = {place.rstrip("/") for row in table("Beside the layers") for place in row}
    kept_out = {name.rstrip("/") for name in (ROOT / ".gitignore").read_text().split()}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert folders - {name for name in folders if name in kept_out or name.endswith(".egg-info")} == layers | beside


def test_a_link_stands_for_each_folder_of_code() -> None:
    links = {path.name for path in (ROOT / "stepdown").iterdir() if path.is_symlink()}
    assert {place.split("/")[0] for row in table("Layers") for place in row} - {"stepdown"} <= links


def test_every_decision_has_its_parts_and_its_line_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    index = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [file for _, _, file in index] == [path.name for path in records]
    for number, (said, title, file) in enumerate(index, 1):
        lines = (folder / file).read_text(encoding="utf-8").splitlines()
        assert (int(said), lines[0]) == (number, f"# {number}. {title}")
        assert re.fullmatch(r"Status: (in force|replaced by \[.+\]\(.+\))", lines[2])
        assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequence"]
