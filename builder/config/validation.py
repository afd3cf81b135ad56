"""Reads YAML and JSON written by people; a mistake in them becomes one line that names file, line and field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from stepdown.builder.common.keys import key_in
from stepdown.builder.config.misspelt import unknown_key
from stepdown.builder.errors import BadInput
from stepdown.builder.records import canonical_json

T = TypeVar("T")

_HOLDS_A_KEY = "this looks like an API key: name the environment variable that holds it instead"
"""A config holds the name of a variable, never its value."""


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""Kinds of errors that are a key which nothing is known of."""


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses what JSON has no form for: dates, bytes, sets, infinities, keys that are no text."""

    def text_keys(part: Any) -> bool:
        if isinstance(part, dict):
            return all(isinstance(key, str) and text_keys(item) for key, item in part.items())
        return not isinstance(part, list) or all(map(text_keys, part))

    try:
        canonical_json(value).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError("must be plain JSON: text, finite numbers, true, false, null, lists, mappings") from None
    if not text_keys(value):
        raise ValueError("keys must be text")
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_plain)]
"""A mapping that survives JSON as it is."""


class Strict(BaseModel):
    """A frozen config record that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class _UniqueKeys(yaml.SafeLoader):
    """Safe YAML in which a repeated key is an error, not a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, (str, int, float, bool)):
                raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def yaml_value(text: str) -> Any:
    """The value of a YAML text in which no key is given twice. Raises yaml.YAMLError, whatever the text holds."""
    try:
        return yaml.load(text, Loader=_UniqueKeys)  # noqa: S506 - a SafeLoader
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        # The loader's own constructors raise all of these: `!!bool x` is a KeyError, `!!int ""` an IndexError.
        raise yaml.YAMLError(f"a value that can not be read: {error}") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping a YAML file holds. Raises BadInput: unreadable, not YAML, not a mapping, or holding an API key."""
    text = read_text(path)
    for number, line in enumerate(text.splitlines(), 1):
        if key_in(line):
            raise BadInput(_HOLDS_A_KEY, file=path, line=number)
    try:
        data = yaml_value(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise BadInput(str(error.problem), file=path, line=mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise BadInput(f"not YAML: {error}", file=path) from None
    if not isinstance(data, dict):
        raise BadInput("must be a mapping of keys to values", file=path)
    return data


def refuse_keys(value: Any, field: str = "") -> None:
    """Raises BadInput, naming the field, where a text in nested data is an API key."""
    if isinstance(value, str) and key_in(value):
        raise BadInput(_HOLDS_A_KEY, field=field)
    if isinstance(value, Mapping):
        for name, part in value.items():
            refuse_keys(part, f"{field}.{name}" if field else str(name))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            refuse_keys(part, f"{field}.{index}")


def read_text(path: Path) -> str:
    """The file as UTF-8 text, without the byte order mark that some programs put before it. Raises BadInput where it
    cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path) from None
    except ValueError as error:  # NUL in a path
        raise BadInput(str(error), file=repr(str(path))) from None


def read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSONL file with their line numbers, blank lines passed over. Raises BadInput at a bad line."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=path, line=number) from None


def validated(
    kind: type[T], data: Any, *, file: str | Path | None = None, line: int | None = None, field: str = ""
) -> T:
    """`data` as a `kind` (a pydantic model or any type it can check). Raises BadInput for the first thing wrong; an
    unknown key comes before others, with the nearest that is known.

    Where `file` is a YAML file and no line is given, the line of the offending key is looked up in it.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A misspelt key is why the right one is missing, so it is told first.
        first = next((one for one in found if one["type"] in _UNKNOWN), found[0])
        path = [part for part in first["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
        name = ".".join([*([field] if field else []), *map(str, path)])
        problem = first["msg"].removeprefix("Value error, ")
        if first["type"] in _UNKNOWN:
            problem = unknown_key(kind, path)
        if line is None and file is not None and Path(file).suffix in {".yaml", ".yml"}:
            line = line_of(Path(file), name.split("."))
        raise BadInput(problem, file=file, line=line, field=name) from None


def line_of(path: Path, keys: list[str]) -> int | None:
    """The line of the deepest of `keys` that the YAML file has."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    line = None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = [(k, v) for k, v in node.value if k.value == key]
            if not found:
                return line
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def changes(old: Mapping[str, Any], new: Mapping[str, Any], at: str = "") -> list[str]:
    """The differences between two nested mappings, a line each.

    >>> changes({"a": {"b": 1}}, {"a": {"b": 2}})
    ['a.b: 1 -> 2']
    """
    lines: list[str] = []
    for key in sorted({*old, *new}, key=str):
        name = f"{at}.{key}" if at else str(key)
        if key not in new:
            lines.append(f"{name}: {old[key]!r} is gone")
        elif key not in old:
            lines.append(f"{name}: {new[key]!r} is new")
        elif isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            lines += changes(old[key], new[key], name)
        elif isinstance(old[key], list) and isinstance(new[key], list):
            lines += changes(_numbered(old[key]), _numbered(new[key]), name)
        elif old[key] != new[key]:
            lines.append(f"{name}: {old[key]!r} -> {new[key]!r}")
    return lines


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(index): item for index, item in enumerate(items)}
