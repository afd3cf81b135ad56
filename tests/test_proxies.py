"""Models on this machine are asked without the environment's proxies; one that can not be used is named once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import BadInput
from stepdown.builder.models import Client, proxies
from tests.conftest import ROOT, Shop
from tests.provider import Provider
from tests.workshop import ABILITIES, config

VARIABLES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        for variable in (name, name.upper()):
            monkeypatch.setenv(variable, "")  # so that whatever a test leaves is taken back
            monkeypatch.delenv(variable)


@pytest.mark.parametrize("bad", [False, True])
def test_a_model_on_this_machine_is_asked_directly_whatever_proxies_are_set(
    bad: bool, shop: Shop, provider: Callable[..., Provider]
) -> None:
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        proxy.setblocking(False)
        address = "socks9://nowhere" if bad else f"http://127.0.0.1:{proxy.getsockname()[1]}"
        path = shop.write(config(provider(ABILITIES).url, [[0, 1]]))
        built = subprocess.run(
            [sys.executable, "-m", "stepdown", "build", str(path), "--run", str(shop.run)],
            env={**os.environ, "HTTP_PROXY": address, "HTTPS_PROXY": address, "ALL_PROXY": address},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert built.returncode == 0, built.stderr
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert shop.labels() == [["low", "mid"]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks9://me:pass@host:1", "begins with neither"),
        ("http://host:port", "no address"),
        ("http://", "names no host"),
        ("my proxy", "names no host"),
    ],
)
def test_a_bad_proxy_variable_is_named_once_and_not_shown(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(BadInput, match=f"the environment variable HTTPS_PROXY is no proxy.*{said}") as raised:
        Client([Model(name="m", model="openai/m")], OperationConfig())
    assert value not in str(raised.value)


def test_other_hosts_keep_their_proxy_and_what_no_proxy_names_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "internal.example")
    proxies.prepare([None, "http://127.0.0.7:8000/v1", "https://api.example/v1"])
    direct = os.environ["no_proxy"].split(",")
    assert direct == ["internal.example", "localhost", "127.0.0.1", "::1", "127.0.0.7"]
    assert os.environ["NO_PROXY"] == os.environ["no_proxy"]
    assert os.environ["https_proxy"] == "http://proxy.example:3128"


def test_without_proxies_the_environment_is_left_alone() -> None:
    proxies.prepare([None])
    assert "no_proxy" not in os.environ
