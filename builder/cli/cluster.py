"""`stepdown cluster prepare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.cli.documents import as_json_option, print_document
from stepdown.builder.cli.main import BAD_INPUT
from stepdown.builder.common.extras import require
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.tables import Table, print_table
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.inspect.preparing import PreparedNode, prepare_nodes


@click.group("cluster")
def command() -> None:
    """Make the nodes of a Ray cluster ready for a run."""


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--archives",
    type=click.Path(path_type=Path),
    help="A folder that every node sees, with container images as `docker save` writes them: what is there is loaded, "
    "and not pulled.",
)
@as_json_option
def prepare(config: Path, archives: Path | None, as_json: bool) -> None:
    """Look at every node of the cluster that CONFIG names, fetch the container images that its instances need, and say
    what each node lacks: stepdown itself, its extras, Docker, images, weights, agent programs.

    Nodes that do not state what the workloads need (`ray start --resources`) are shown and left out. Exit code 2 where
    another can not do the work, or none is left. What is there is not fetched again.
    """
    loaded = load_config(config)
    console.name_foreign_code(loaded.protocol)
    require("cluster", "ray", field="operation.executor")
    found: list[PreparedNode] = []
    for node in prepare_nodes(loaded, archives):
        click.echo(f"{printable(node.name)}: {node.state}", err=True)
        found.append(node)
    found.sort(key=lambda node: node.name)
    if as_json:
        print_document({"ok": not _problem(found), "nodes": [node.to_json() for node in found]})
    else:
        print_table(console.wide(), _table(found))
        for line in _lacking(found):
            click.echo(line)
    if problem := _problem(found):
        click.echo(f"stepdown: {problem}", err=True)
        sys.exit(BAD_INPUT)


def _table(nodes: Sequence[PreparedNode]) -> Table:
    """A row for each node, a column for each part that any of them was looked at for."""
    parts = list(dict.fromkeys(check.part for node in nodes for check in node.checks))
    rows = tuple((printable(node.name), node.state, *(_cell(node, part) for part in parts)) for node in nodes)
    return Table("nodes", ("node", "state", *map(printable, parts)), rows, words=2 + len(parts))


def _cell(node: PreparedNode, part: str) -> str:
    there = [check.ok for check in node.checks if check.part == part]
    return "" if not there else "ok" if all(there) else "missing"


def _lacking(nodes: Sequence[PreparedNode]) -> Iterator[str]:
    for node in nodes:
        for check in node.checks:
            if not check.ok:
                yield printable(f"{node.name} lacks {check.part}: {SECRETS.hidden(check.detail)}")


def _problem(nodes: Sequence[PreparedNode]) -> str:
    """Why not all nodes can do the work; empty where they can."""
    used = [node for node in nodes if node.is_used]
    unfit = [node for node in used if not node.is_ready]
    if unfit:
        names = ", ".join(printable(node.name) for node in unfit)
        return f"{len(unfit)} of {len(used)} nodes can not do the work: {names}"
    return "" if used else "no node of the cluster states what the workloads need"
