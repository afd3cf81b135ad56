"""A built and sampled run, its review page served in this process, and a real browser to review it with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from stepdown.audit.cases import open_cases
from stepdown.audit.store import AuditStore
from stepdown.audit.web.server import reviewer_access, serve
from stepdown.builder.pages.gate import Access
from stepdown.builder.pages.server import RunningServer
from tests import workshop
from tests.conftest import Shop, stepdown

CHROMIUM = "/usr/bin/chromium"
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def config(needs: Sequence[Sequence[int]], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A run of the gallery by pseudo-models alone, every step of it sampled."""
    made = workshop.config("http://127.0.0.1:9", needs, options=options, protocol={"audit": {"rate": 1.0}})
    for tier, name in zip(made["protocol"]["pool"]["tiers"], ("skill-0", "skill-1", "reference"), strict=True):
        tier["models"] = [{"name": name, "model": f"workload/{name}"}]
    made["protocol"]["workloads"][0] |= {"harness": "tests.audit.gallery:Gallery", "seeds": {"source": "reference"}}
    return made


def sampled(shop: Shop, needs: Sequence[Sequence[int]], options: Mapping[str, Any] | None = None) -> Path:
    """The folder of a run whose steps are all in the sample."""
    assert shop.build(config(needs, options)).code == 0
    drawn = stepdown("audit", "sample", str(shop.run))
    assert drawn.code == 0, drawn.err
    return shop.run


@dataclass
class Review:
    """A served run: its store, its access of its reviewers, and what went wrong in a page."""

    store: AuditStore
    server: RunningServer
    accesses: dict[str, Access]
    failures: list[Exception] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def link(self, reviewer: str = "ann") -> str:
        return self.accesses[reviewer].link(self.server.port)

    @contextmanager
    def client(self, reviewer: str | None = "ann") -> Iterator[httpx.Client]:
        """A browser without scripts, at the reviewer's desk; without a reviewer, one that has no link."""
        headers = {"origin": self.origin}
        with httpx.Client(base_url=self.origin, headers=headers, follow_redirects=True, timeout=30) as client:
            if reviewer is not None:
                assert client.get(self.link(reviewer)).status_code == 200
            yield client

    def verdicts(self, reviewer: str = "ann") -> dict[str, str]:
        """What is in the store: verdicts by step, the workload's name left out."""
        return {step.partition("/")[2]: one.verdict.value for step, one in self.store.current(reviewer).items()}


@contextmanager
def reviewed(run: Path, *reviewers: str) -> Iterator[Review]:
    """The run's page, served to reviewers; no page may fail."""
    with open_cases(run) as cases, AuditStore(run) as store:
        accesses = [reviewer_access(store.reviewers.join(name)) for name in reviewers or ("ann",)]
        failures: list[Exception] = []
        with serve(store, cases, accesses, failures.append) as server:
            yield Review(store, server, {desk.name: desk for desk in accesses}, failures)
    assert failures == []


def fields(page: str, form: str = "verdict") -> dict[str, str]:
    """The hidden fields of a page's form."""
    inside = page.partition(f'<form id="{form}"')[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', inside)
    return {name: unescape(value) for name, value in found}
