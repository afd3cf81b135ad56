"""A run, its pages served in this process, and a browser without scripts to look at them with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import httpx

from stepdown.builder.pages.gate import Access
from stepdown.builder.pages.server import RunningServer
from stepdown.builder.run.ledger import Ledger
from stepdown.builder.run.reading import open_begun_ledger
from stepdown.builder.view.server import run_access, serve
from stepdown.builder.view.shown_run import ShownRun


@dataclass
class View:
    """A served run."""

    ledger: Ledger
    server: RunningServer
    access: Access
    client: httpx.Client
    failures: list[Exception] = field(default_factory=list)

    @property
    def link(self) -> str:
        return self.access.link(self.server.port)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}{self.access.path}"

    def get(self, address: str, status: int = 200) -> str:
        """A page's HTML."""
        answer = self.client.get(self.base + address)
        assert answer.status_code == status, answer.text[:500]
        return answer.text

    def text(self, address: str, status: int = 200) -> str:
        """What a page says, without its markup."""
        return words(self.get(address, status))

    def names(self, address: str) -> list[str]:
        """The instances that a list shows."""
        return [unescape(name) for name in re.findall(r'<a class="name"[^>]*>([^<]*)</a>', self.get(address))]

    def following(self, page: str) -> str:
        """The address of the next page."""
        (found,) = re.findall(r'id="next" href="([^"]+)"', page)
        return unescape(found)


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


@contextmanager
def viewed(run: Path) -> Iterator[View]:
    """The pages of a run, served; none may fail."""
    with open_begun_ledger(run) as ledger:
        shown = ShownRun(ledger, run)
        access = run_access(shown)
        failures: list[Exception] = []
        with (
            serve(shown, access, failures.append) as server,
            httpx.Client(follow_redirects=True, timeout=60) as client,
        ):
            assert client.get(access.link(server.port)).status_code == 200
            yield View(ledger, server, access, client, failures)
    assert failures == []
