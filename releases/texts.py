"""What no text of a release may hold: keys, the paths of somebody's machine, names of pool models, unstorable text.

Two rules for paths. In what stepdown itself writes - the fields of a row, manifest, card, Croissant file - no absolute
path of a machine stands at all. Messages and tool definitions are the benchmark's own: `/testbed`, `/tmp/x` or
`/root/.cache` of its container belong there; folders in somebody's home (`/home/NAME`, `/Users/NAME`,
`C:\\Users\\NAME`, `/root/NAME`) do not, unless the publisher lets one through by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stepdown.builder.common.keys import key_in
from stepdown.builder.config.pool import WORKLOAD
from stepdown.releases.layout import RunManifest

DEEPEST = 64
"""Levels of nesting in a message or a tool definition; JSON Schemas of real tools have a dozen."""

_HOME = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})[A-Za-z0-9_][A-Za-z0-9._-]*|(?<![\w./-])/root/[A-Za-z0-9_-]+"
)
_HOME_PARTS = ("/home/", "/Users/", ":\\Users", ":\\\\Users", "/root/")
_MACHINE = re.compile(
    r"(?<![\w.:/\\)~*<-])/(?:home|Users|root|tmp|var|opt|mnt|media|srv|private|work|workspace|usr|etc|data|scratch)/"
    r"[^\s\"'`,;)]+|\b[A-Za-z]:\\[^\s\"']+|(?<![\w/])/root\b|file:///"
)


@dataclass(frozen=True, slots=True)
class Texts:
    """All texts of a JSON value, keys included, and what is wrong with its other parts."""

    joined: str
    problem: str | None


def texts_of(value: Any) -> Texts:
    """The texts of a JSON value, a line each. Walks without recursion: the value may be hostile."""
    found: list[str] = []
    problem = None
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, (dict, list)):
            if depth == DEEPEST:
                problem = f"nested more than {DEEPEST} levels deep"
                continue
            if isinstance(item, dict):
                found.extend(item)
                todo.extend((part, depth + 1) for part in item.values())
            else:
                todo.extend((part, depth + 1) for part in item)
        elif isinstance(item, float) and not math.isfinite(item):
            problem = "a number that is too large"
    return Texts(readable("\n".join(found)), problem)


_ESCAPED = re.compile(r"\\+(?:u00([2-7][0-9A-Fa-f])|(/))")


def readable(text: str) -> str:
    """The text and, where it quotes JSON with letters or slashes escaped, what that says.

    >>> readable('{"path": "\\\\/home\\\\/ann"}').splitlines()[1]
    '{"path": "/home/ann"}'
    """
    if "\\u00" not in text and "\\/" not in text:
        return text
    return text + "\n" + _ESCAPED.sub(lambda found: found[2] or chr(int(found[1], 16)), text)


def unstorable(text: str) -> str | None:
    """What keeps a text from being stored by everybody: NUL, or a lone surrogate."""
    if "\0" in text:
        return "holds NUL"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "holds a lone surrogate"
    return None


def machine_path(text: str) -> str | None:
    """The first absolute path of some machine in a text that should have none.

    >>> machine_path("see /tmp/run/x.json"), machine_path("https://example.org/home/page")
    ('/tmp/run/x.json', None)
    """
    if "/" not in text and "\\" not in text:
        return None
    found = _MACHINE.search(text)
    return found[0] if found else None


def without_paths(text: str) -> str:
    """The text with the paths of a machine left out, for reasons that quote an error.

    >>> without_paths("no such file: /tmp/run/x.json, tried twice")
    'no such file: (a path), tried twice'
    """
    return _MACHINE.sub("(a path)", text)


def home_folder(text: str, allowed: Collection[str] = ()) -> str | None:
    """The first folder in somebody's home in a text.

    >>> home_folder("cd /home/ann/src"), home_folder("cat /root/.bashrc"), home_folder("/home/ann", ["/home/ann"])
    ('/home/ann', None, None)
    """
    if not any(part in text for part in _HOME_PARTS):
        return None
    found = (match[0].rstrip(".") for match in _HOME.finditer(text) if not _in_address(text, match.start()))
    return next((path for path in found if path not in allowed), None)


_LONGEST_ADDRESS = 2000


def _in_address(text: str, place: int) -> bool:
    """Whether a place is in the path of a web address: `https://example.org/home/page` is nobody's folder."""
    before = re.split(r"[\s\"'`<>()]", text[max(0, place - _LONGEST_ADDRESS) : place])[-1]
    return re.search(r"https?://[^/]", before) is not None


def names_of(runs: Iterable[RunManifest]) -> tuple[str, ...]:
    """What the pools' models are called: their names, and their names at the provider.

    Pseudo-models of a workload are left out: they are nobody's product, and `reference` is an ordinary word.
    """
    names: set[str] = set()
    for run in runs:
        for model in _models(run):
            provider = model.get("model")
            if isinstance(provider, str) and not provider.startswith(WORKLOAD):
                names |= {str(model.get("name")).lower(), provider.rsplit("/", 1)[-1].lower()}
    return tuple(sorted(names - {""}))


def _models(run: RunManifest) -> Iterator[dict[str, Any]]:
    pool = run.protocol.get("pool")
    tiers = pool.get("tiers") if isinstance(pool, dict) else None
    for tier in tiers if isinstance(tiers, list) else ():
        models = tier.get("models") if isinstance(tier, dict) else None
        yield from (model for model in (models if isinstance(models, list) else ()) if isinstance(model, dict))


_SEPARATORS = re.compile(r"[-_. :]+")
_SEPARATED = r"[-_. :\u00a0\u2010-\u2015]"


def _first(name: str) -> str:
    """What every spelling of a name begins with."""
    return name if _is_word(name) else _SEPARATORS.split(name)[0]


def _is_word(name: str) -> bool:
    """Names without a digit, such as `small-model`, may be ordinary words once they are spelt otherwise."""
    return not any(letter.isdigit() for letter in name) or not _SEPARATORS.split(name)[0]


def _spelt(name: str) -> str:
    """A pattern of the ways in which people and models write a name."""
    if _is_word(name):
        return re.escape(name)
    return _SEPARATED.join(map(re.escape, _SEPARATORS.split(name)))


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked for in the rows of one release."""

    names: tuple[str, ...] = ()
    """In lower case. A name counts where it stands as a word of its own, whatever its case and separators: `Opus 4.6`
    and `opus_4-6` are `opus-4.6`."""
    allowed_names: frozenset[str] = frozenset()
    allowed_paths: frozenset[str] = frozenset()
    own_paths: tuple[str, ...] = ()
    """Folders of the machine that publishes: only it knows them."""
    _shapes: dict[str, re.Pattern[str]] = field(default_factory=dict)

    def names_in(self, text: str) -> frozenset[str]:
        """The names of pool models in a text."""
        lower = text.lower()
        return frozenset(name for name in self.names if _first(name) in lower and self._shape(name).search(lower))

    def _shape(self, name: str) -> re.Pattern[str]:
        if name not in self._shapes:
            self._shapes[name] = re.compile(rf"(?<![a-z0-9]){_spelt(name)}(?![a-z0-9])")
        return self._shapes[name]

    def in_message(self, texts: Texts) -> Iterator[str]:
        """What is wrong with the texts of a message or a tool definition, model names aside."""
        yield from self._anywhere(texts)
        if home := home_folder(texts.joined, self.allowed_paths):
            yield f"names a folder in somebody's home: {home} (--allow-path {home})"

    def in_field(self, text: str) -> Iterator[str]:
        """What is wrong with a field that stepdown or the harness wrote, model names aside."""
        yield from self._anywhere(Texts(text, None))
        if text.startswith("/") or (found := machine_path(text)):
            yield f"an absolute path: {text if text.startswith('/') else found}"

    def _anywhere(self, texts: Texts) -> Iterator[str]:
        if texts.problem:
            yield texts.problem
        if found := unstorable(texts.joined):
            yield found
        if found := key_in(texts.joined):
            yield f"looks like {found}"
        for path in self.own_paths:
            if path in texts.joined:
                yield f"names a folder of this machine: {path}"
