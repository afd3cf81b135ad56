"""`stepdown judge calibrate`: judges, or recorded scores, measured against human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.judge_output import print_lines
from stepdown.builder.config.loading import load_config
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Verdict
from stepdown.judges import configured
from stepdown.judges.calibration import data
from stepdown.judges.calibration import study as studies
from stepdown.judges.calibration.data import RatedAnswers
from stepdown.judges.calibration.transfer import Transfer, transfer_json, transfer_lines, transferred

JUDGE = "judge"
"""The score of the config's own judge: 1 where it passes an answer, 0 where it does not."""

_path = click.Path(path_type=Path)


@click.command("calibrate")
@click.argument("file", required=False, type=_path)
@click.option("--choose", type=_path, help="Choose score and threshold on this file; goes with --apply, without FILE.")
@click.option("--apply", "applied", type=_path, help="Apply what was chosen to this file.")
@click.option(
    "--halves", is_flag=True, help="Choose on every other conversation of FILE, apply to the rest; both ways."
)
@click.option("--score", "scores", multiple=True, help="A recorded score to measure, or `guards`; all by default.")
@click.option("--threshold", "thresholds", multiple=True, type=float, help="A threshold to show; repeatable.")
@click.option("--target", default=0.1, show_default=True, help="P(pass | bad) that a chosen threshold may have.")
@click.option("--good", "least", default=3.0, show_default=True, help="Least median of every rating of a good answer.")
@click.option("--config", type=_path, help="Also ask the judge of this config about every answer: score `judge`.")
@click.option("--seed", default=0, show_default=True, help="Seed of the resampling.")
@click.option("--plot", type=_path, help="Draw it here, as .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def calibrate_command(
    file: Path | None,
    choose: Path | None,
    applied: Path | None,
    halves: bool,
    scores: Sequence[str],
    thresholds: Sequence[float],
    target: float,
    least: float,
    config: Path | None,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure judge scores against the human ratings of FILE.

    FILE is JSONL: `task_id` (conversation<::>turn), `input`, `contexts`, `answer`, `reference`, `answerability`,
    `human` (ratings by several people, 1 to 4) and recorded scores under `judges`. An answer is good if the median of
    every rating is at least --good.

    The output has P(pass | bad), P(pass | good) and P(bad | pass) with exact intervals, by threshold, for all ratings
    together and for each rating alone. Then a score and a threshold are chosen for --target by nested cross-validation
    that holds whole conversations out: once among single scores, once among combinations. The two are compared.

    With --choose and --apply a score and a threshold are chosen on one file and applied to another: among single
    scores, and among combinations. Conversations that both files have are named, answers that equal their reference are
    reported apart, and it is said how many answers would show what. Answers on which a judge came to no verdict count
    as not passed everywhere.

    \b
    stepdown judge calibrate rated.jsonl --threshold 0.7 --plot calibration.svg
    stepdown judge calibrate --choose may.jsonl --apply june.jsonl --score guards --score novelty
    """
    thresholds = thresholds or studies.DEFAULT_THRESHOLDS
    studies.check_options(thresholds, target, seed)
    if choose is not None or applied is not None:
        if choose is None or applied is None or file is not None or halves:
            raise BadInput("--choose and --apply go together, without FILE and --halves")
        pair = [_read(path, scores, config) for path in (choose, applied)]
        _show([transferred(pair[0], pair[1], target, least, seed)], as_json)
        return
    if file is None:
        raise BadInput("name a FILE, or two by --choose and --apply")
    answers = _read(file, scores, config)
    if halves:
        first, second = (answers.of_groups(set(answers.groups[start::2])) for start in (0, 1))
        _show([transferred(*pair, target, least, seed) for pair in ((first, second), (second, first))], as_json)
        return
    result = studies.study(answers, thresholds, target, least, seed)
    if plot is not None:
        from stepdown.judges.calibration.plot import draw_plot

        rated = answers.rated
        values = {name: [one.scores[name] for one in rated] for name in rated[0].scores}
        draw_plot(plot, values, [one.is_good(least) for one in rated], target)
    if as_json:
        print_document(studies.to_json(result))
    else:
        print_lines(studies.study_lines(result))


def _show(found: Sequence[Transfer], as_json: bool) -> None:
    if as_json:
        print_document({"transfers": [transfer_json(one) for one in found]})
        return
    for number, one in enumerate(found):
        print_lines([""] if number else [])
        print_lines(transfer_lines(one))


def _read(file: Path, scores: Sequence[str], config: Path | None) -> RatedAnswers:
    answers = data.read_rated_answers(file, scores)
    return answers if config is None else _add_judge_score(answers, config)


def _add_judge_score(answers: RatedAnswers, config: Path) -> RatedAnswers:
    """Ask the config's judge about every answer: the answers with its verdict as a further score.

    Answers without a verdict are not passed, and counted.
    """
    kept, without = [], 0
    with configured.open_judges(load_config(config)) as judges:
        for number, one in enumerate(answers.rated, 1):
            finding = judges.judge(one.case)
            click.echo(f"{number}/{len(answers.rated)} {finding.verdict.value}", err=True)
            without += finding.verdict is Verdict.TECHNICAL
            kept.append(replace(one, scores={**one.scores, JUDGE: float(finding.verdict is Verdict.PASS)}))
    if without == len(kept):
        raise BadInput("the judge came to no verdict on any answer", file=config)
    return replace(answers, rated=tuple(kept), without_verdict=without)
