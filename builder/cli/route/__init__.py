"""`stepdown route`: one file a subcommand."""

from __future__ import annotations

import click

from stepdown.builder.cli.route import serve, train


@click.group("route")
def command() -> None:
    """Make a router from labels, and run it.

    \b
      stepdown route train release --out policy      make a policy of the training groups
      stepdown score release --policy policy         hold it against the groups that were left out
      stepdown route serve policy --pool pool.yaml   an OpenAI-compatible address that routes every call
      stepdown live CONFIG --policy policy --out live   let it do whole tasks, and see its bill
    """


for subcommand in (train.command, serve.command):
    command.add_command(subcommand)
