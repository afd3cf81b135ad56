"""What card, Croissant file and licences must say for the manifest's words to be true of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from stepdown.builder.common.keys import key_in
from stepdown.builder.config.validation import yaml_value
from stepdown.releases.card import BEGIN, END, counts_block, head_of
from stepdown.releases.croissant import CONTEXT, RAI_KEYS, croissant
from stepdown.releases.layout import ROWS, Manifest
from stepdown.releases.parquet import SHARD_NAME
from stepdown.releases.problems import FieldProblem
from stepdown.releases.texts import home_folder, machine_path, unstorable

LONGEST_HEAD = 1 << 20
"""Characters of a card's YAML head: YAML is read slowly."""


def document_texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON value with its place; keys stand for themselves. Without recursion."""
    todo = [(at, value)]
    while todo:
        place, item = todo.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, dict):
            for key, part in item.items():
                yield place, str(key)
                todo.append((f"{place}.{key}" if place else str(key), part))
        elif isinstance(item, (list, tuple)):
            todo.extend((f"{place}.{index}" if place else str(index), part) for index, part in enumerate(item))


def text_problems(text: str, allowed_paths: tuple[str, ...] = ()) -> Iterator[str]:
    """What no document of a release may hold."""
    if found := unstorable(text):
        yield found
    if found := key_in(text):
        yield f"looks like {found}"
    if text in allowed_paths:
        return
    if found := home_folder(text) or machine_path(text):
        yield f"an absolute path of a machine: {found}"


def card_problems(text: str, manifest: Manifest) -> Iterator[FieldProblem]:
    """What is wrong with a dataset card."""
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        yield "", "has no YAML head between two lines of ---"
        return
    if len(parts[1]) > LONGEST_HEAD:
        yield "", f"its head is longer than {LONGEST_HEAD} characters"
        return
    try:
        head = yaml_value(parts[1])
    except yaml.YAMLError as error:
        yield "", f"its head is not YAML: {str(error)[:200]}"
        return
    due = head_of(manifest)
    if not isinstance(head, dict):
        yield "", "its head is no mapping"
        return
    for key in ("configs", "license_link", "size_categories", "stepdown"):
        if head.get(key) != due[key]:
            yield key, f"must be {json.dumps(due[key], ensure_ascii=False)[:300]}"
    for key in ("dataset_info", "builder_config"):
        if key in head:
            yield key, "changes what load_dataset gives: the Parquet files say themselves what they hold"
    for key in ("license", "task_categories", "tags", "pretty_name"):
        if not head.get(key):
            yield key, "is missing"
    body = parts[2]
    if body.count(BEGIN) != 1 or counts_block(manifest) not in body:
        yield "counts", f"the block from {BEGIN} to {END} is not what the manifest counts"


def croissant_problems(data: Any, manifest: Manifest) -> Iterator[FieldProblem]:
    """What is wrong with a Croissant file, where mlcroissant would not say it. It is parsed here, not interpreted."""
    if not isinstance(data, dict):
        yield "", "must be an object"
        return
    context = data.get("@context")
    for key, value in CONTEXT.items():
        if not isinstance(context, dict) or context.get(key) != value:
            yield f"@context.{key}", f"must be {value}"
            return
    files = {name: file for name, file in manifest.files.items() if name == ROWS or SHARD_NAME.fullmatch(name)}
    due = croissant(manifest, files)
    for place, key in _keys(data):
        if key.startswith("rai:") and key not in RAI_KEYS:
            yield place, "no property of the Croissant RAI specification"
    for key in due:
        if key.startswith("rai:") and not data.get(key):
            yield key, "is missing"
    for key in ("@type", "conformsTo", "version", "recordSet"):
        if data.get(key) != due[key]:
            yield key, "not that of this release"
    listed = data.get("distribution")
    there = (
        {item.get("@id"): item for item in listed if isinstance(item, dict) and isinstance(item.get("@id"), str)}
        if (isinstance(listed, list))
        else {}
    )
    for item in due["distribution"]:
        found = there.pop(item["@id"], None)
        if found is None:
            yield f"distribution.{item['@id']}", "is missing"
            continue
        for key in ("contentUrl", "contentSize", "encodingFormat", "includes", "sha256"):
            if found.get(key) != item.get(key):
                yield f"distribution.{item['@id']}.{key}", f"must be {item.get(key)}"
    for name in there:
        yield f"distribution.{name}", "no file of this release"


def _keys(data: Any) -> Iterator[tuple[str, str]]:
    todo = [("", data)]
    while todo:
        place, item = todo.pop()
        if isinstance(item, dict):
            for key, part in item.items():
                here = f"{place}.{key}" if place else key
                yield here, key
                todo.append((here, part))
        elif isinstance(item, list):
            todo.extend((f"{place}.{index}", part) for index, part in enumerate(item))


def license_problems(text: str, manifest: Manifest) -> Iterator[FieldProblem]:
    """Each benchmark's terms must be named."""
    for benchmark in manifest.labels:
        if f"**{benchmark}**" not in text:
            yield benchmark, "its terms are not named"
