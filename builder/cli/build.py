"""`stepdown build`."""

from __future__ import annotations

from pathlib import Path

import click

from stepdown.builder.cli.labelling import label_and_report
from stepdown.builder.config.loading import load_config


@click.command("build")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--run", "folder", required=True, type=click.Path(path_type=Path), help="The run's folder; made if needed."
)
def command(config: Path, folder: Path) -> None:
    """Label the workloads of CONFIG into the run's folder.

    Every response is kept before it is used and every trial is recorded: after any interruption `stepdown resume`
    goes on at the very next trial. Building into the folder of an unfinished run of the same protocol resumes it.

    \b
    Writes into the folder:
      question_bank.jsonl   one tier-labelled prefix per step
      evidence.jsonl        the trials behind every label (names models: internal)
      audit_queue.jsonl     sampled steps for a human reviewer
      probes.jsonl          what every model came to at every step, where `rules.probe` asks for it (names models)
      manifest.json         pool, protocol, counts, drops, digests of the files above
      spend.json            what was really paid
    """
    label_and_report(folder, load_config(config))
