"""Which key a person most likely meant: the nearest one of those that may stand in a misspelt one's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from stepdown.builder.common.text import nearest


def unknown_key(kind: Any, path: Sequence[str | int]) -> str:
    """What is wrong with an unknown key at a path inside data that should be a `kind`.

    >>> class Rates(BaseModel):
    ...     calls: int
    >>> unknown_key(dict[str, Rates], ["here", "cals"])
    'unknown key: did you mean `calls`?'
    """
    kinds = [kind]
    for part in path[:-1]:
        kinds = [inner for one in kinds for inner in _inside(one, part)]
    known = {name for one in kinds for member in _members(one) for name in _fields(member) or ()}
    meant = nearest(str(path[-1]), sorted(known))
    return f"unknown key: did you mean `{meant}`?" if meant else "unknown key"


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    """The kinds of what stands at a part of a path in data of a kind."""
    for member in _members(kind):
        fields = _fields(member)
        if fields is None:
            yield from (argument for argument in get_args(member) if argument is not Ellipsis)
        else:
            # A union's errors name the member beside the fields.
            yield fields.get(str(part), member)


def _members(kind: Any) -> Iterator[Any]:
    """A kind, or the members of a union."""
    if get_origin(kind) is Annotated:
        yield from _members(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for argument in get_args(kind):
            yield from _members(argument)
    else:
        yield kind


def _fields(kind: Any) -> dict[str, Any] | None:
    """The keys of a record and what stands under each; None where the kind is no record."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        return {name: info.annotation for name, info in kind.model_fields.items()}
    return {field.name: field.type for field in fields_of(kind)} if is_dataclass(kind) else None
