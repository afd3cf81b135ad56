"""`stepdown audit`: one file a subcommand."""

from __future__ import annotations

import click

from stepdown.builder.cli.audit import apply, prelabel, reassign, repeat, sample, serve, server, summary
from stepdown.builder.cli.audit import exchange as files


@click.group("audit")
def command() -> None:
    """Have people check the labels: sample steps, review them, and apply the verdicts.

    \b
    In this order:
      stepdown audit sample RUN             draw about 10% of the steps of every multi-step workload
      stepdown audit serve RUN              review them in a browser, or
      stepdown audit export RUN -o FILE     in a tool of your own, and
      stepdown audit import RUN FILE        take the reviewed file back
      stepdown audit push RUN ADDRESS       on an Argilla or Label Studio server, and
      stepdown audit pull RUN               take what reviewers answered there
      stepdown audit reassign RUN ANN BO    give ANN's open steps to BO
      stepdown audit summary RUN            how tight the labels are, and how far reviewers agree
      stepdown audit apply RUN              lower labels by the verdicts: a revision of the run's files
      stepdown audit undo RUN               take the newest revision back
      stepdown audit repeat RUN --times 3   does the locked model do it again?
    """


for subcommand in (
    sample.command,
    serve.command,
    *files.commands,
    *server.commands,
    reassign.command,
    prelabel.command,
    summary.command,
    *apply.commands,
    repeat.command,
):
    command.add_command(subcommand)
