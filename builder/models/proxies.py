"""Proxies that the environment names: models on this machine are asked without them, and a bad one is named once."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
from collections.abc import Collection, Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from stepdown.builder.errors import BadInput

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_SCHEMES = ("http", "https", "all")
_SOCKS = ("socks5", "socks5h")


def prepare(addresses: Collection[str | None]) -> None:
    """Set this process's NO_PROXY so that addresses on this machine are asked directly: no key goes to a proxy.

    `addresses` are where models are asked; None is a provider's own. Raises BadInput where a proxy variable is no
    address of a proxy and a model elsewhere is to be asked; where all are on this machine no proxy is used at all.
    """
    proxies = getproxies_environment()
    if not any(proxies.get(scheme) for scheme in _SCHEMES):
        return
    hosts = {host for address in addresses if (host := _host(address)) and _is_loopback(host)}
    is_elsewhere = any(not _is_loopback(_host(address)) for address in addresses)
    bad = next(_problems(proxies), None)
    if bad and is_elsewhere:
        raise BadInput(bad)
    direct = ("*",) if bad else (*_THIS_MACHINE, *sorted(hosts - {*_THIS_MACHINE}))
    already = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    _set_no_proxy(",".join(dict.fromkeys([*already, *direct])))


def proxy_of(address: str) -> str | None:
    """The environment's proxy for an address, as a whole address itself; None where it is asked directly."""
    parts = urlsplit(address)
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _set_no_proxy(value: str) -> None:
    for name in ("no_proxy", "NO_PROXY"):  # some libraries read one, some the other
        os.environ[name] = value


def _host(address: str | None) -> str:
    return (urlsplit(address).hostname or "") if address else ""


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or number.

    >>> [_is_loopback(host) for host in ("127.0.0.5", "::1", "localhost", "example.org")]
    [True, True, True, False]
    """
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return number.is_loopback or number.is_unspecified


def _problems(proxies: dict[str, str]) -> Iterator[str]:
    """A line for each proxy variable that can not be used. Its value may hold a password and is not shown."""
    for scheme in _SCHEMES:
        if (value := proxies.get(scheme)) and (problem := _problem(value)):
            lower = f"{scheme}_proxy"
            name = lower if lower in os.environ else lower.upper()
            yield f"the environment variable {name} is no proxy that can be used: {problem}; mend it or unset it"


def _problem(value: str) -> str | None:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is no address"
    if not host or any(letter.isspace() for letter in value):
        return "it names no host"
    if parts.scheme in _SOCKS:
        return None if importlib.util.find_spec("socksio") else "a SOCKS proxy needs the package socksio"
    return None if parts.scheme in ("http", "https") else "its address begins with neither http:// nor https://"
