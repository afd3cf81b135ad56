"""The site's pages at the addresses that they have in the repository, so that every link between them stays as it is.

MkDocs takes one folder. This gives it the pages outside docs/ too, and names each by its path from the top.
The notebook gets a page that shows what its file holds.
MkDocs calls the `on_` functions as it builds. What is logged as a warning ends `make docs` with an error.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[2]
BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "judges/README.md")
"""Pages outside docs/."""
KINDS = (".md", ".css", ".png", ".svg", ".ipynb")
NOTEBOOK = "docs/notebook"
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?((?:https?:)?//[^"' >]+)""")

log = logging.getLogger("mkdocs.hooks.pages")


def on_config(config: MkDocsConfig) -> None:
    """Name anchors as other readers of Markdown do, so that a link to a heading is right everywhere."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """What MkDocs has found in docs/ under other names, and what it has found in the theme as it is."""
    found = [file for file in files if file.src_dir == config.docs_dir and file.src_uri.endswith(KINDS)]
    paths = [*BESIDE, *(f"docs/{file.src_uri}" for file in found)]
    pages = [File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in paths]
    shown = "\n\n".join(_shown(json.loads((ROOT / f"{NOTEBOOK}.ipynb").read_text(encoding="utf-8"))["cells"]))
    pages.append(File.generated(config, f"{NOTEBOOK}.md", content=shown))
    return Files([*pages, *(file for file in files if file.src_dir != config.docs_dir)])


def _shown(cells: list[dict[str, Any]]) -> Iterator[str]:
    """The parts of a notebook's page: its words, its code, and what the code says."""
    for cell in cells:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for output in cell.get("outputs", []):
            said = "".join(output.get("text") or output["data"]["text/plain"])
            yield f"```text\n{said.rstrip()}\n```"
    yield f"To run it: [the notebook]({Path(NOTEBOOK).name}.ipynb)."


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """The site loads nothing from elsewhere: it tells nobody who reads it, and works without a network."""
    for address in LOADED.findall(output):
        log.warning("%s loads %s", page.file.src_uri, address)
