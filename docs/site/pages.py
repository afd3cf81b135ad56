"""The site's pages at the addresses that they have in the repository, so that every link between them stays as it is.

MkDocs takes one folder. This gives it the pages outside docs/ too, and names each by its path from the top.
MkDocs calls these functions as it builds. What is logged as a warning ends `make docs` with an error.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[2]
BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "judges/README.md")
"""Pages outside docs/."""
KINDS = (".md", ".css", ".png", ".svg")
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
    return Files([*pages, *(file for file in files if file.src_dir != config.docs_dir)])


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """The site loads nothing from elsewhere: it tells nobody who reads it, and works without a network."""
    for address in LOADED.findall(output):
        log.warning("%s loads %s", page.file.src_uri, address)
