"""Templates and static files: those of one page's own, and those that all pages share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stepdown.builder.pages.blocks import Block
from stepdown.builder.pages.styled import styled
from stepdown.builder.pages.turns import text_windows

HERE = Path(__file__).parent


def pages_app(own: Path) -> FastAPI:
    """An app that serves the static files of the folder `own`, and the shared ones."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static/pages", StaticFiles(directory=HERE / "static"))
    app.mount("/static", StaticFiles(directory=own / "static"))
    return app


def page_templates(own: Path) -> Environment:
    """The templates of the folder `own`, which may use the shared ones. What they show is escaped."""
    templates = Environment(
        loader=FileSystemLoader([own / "templates", HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"styled": styled, "windows": text_windows, "thousands": "{:,}".format}
    return templates


def wants_json(request: Request) -> bool:
    """Whether a page's own script asks, and not the browser for a page."""
    return request.headers.get("accept") == "application/json"


def portion_json(last: int, portion: list[Block]) -> dict[str, Any]:
    """A portion of a long text, which ends before character `last`, for the script of the page that has the text."""
    return {"end": last, "blocks": [[block.mono, block.runs] for block in portion]}
