"""`stepdown view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from stepdown.builder.common.extras import require
from stepdown.builder.common.signals import handle_end_signals
from stepdown.builder.common.text import printable
from stepdown.builder.run.reading import open_begun_ledger

NEEDED = ("fastapi", "jinja2", "uvicorn")


@click.command("view")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port on 127.0.0.1; 0 takes a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open the link in a browser.")
def command(run: Path, port: int, opens: bool) -> None:
    """Show RUN in a browser: its instances, and each as a timeline of its steps with every trial: who answered what,
    how the run went on, what the grader or judge said, what it cost.

    Prints a link; open it on this machine. The link holds a secret: whoever has it may read the run. Pages are read
    from the run's ledger as it is then, also while a build works on it, and nothing is changed. Ctrl-C ends it. In the
    page, `?` shows the keys.
    """
    require("audit", *NEEDED)
    with open_begun_ledger(run) as ledger:
        from stepdown.builder.view.server import run_access, serve
        from stepdown.builder.view.shown_run import ShownRun

        shown = ShownRun(ledger, run)
        access = run_access(shown)
        with serve(shown, access, _report_error, port) as server, handle_end_signals(server.stop):
            link = access.link(server.port)
            click.echo(link)
            click.echo("open the link in a browser on this machine; Ctrl-C ends the server", err=True)
            if opens:
                webbrowser.open(link)
            server.wait()


def _report_error(error: Exception) -> None:
    click.echo(f"stepdown: a page failed: {printable(f'{type(error).__name__}: {error}')}", err=True)
