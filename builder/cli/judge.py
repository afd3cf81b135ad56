"""`stepdown judge`: try a judge on one answer, and measure judges against people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from stepdown.builder.cli.judge_exam import exam_command
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.validation import read_text, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Verdict
from stepdown.judges import configured
from stepdown.judges.calibration import data
from stepdown.judges.calibration import study as studies
from stepdown.judges.calibration.data import RatedAnswers
from stepdown.judges.case import JudgeCase
from stepdown.judges.guards import UnsourcedItem, unsourced_items
from stepdown.judges.panel import JudgeOpinion, PanelFinding
from stepdown.judges.prompts import prompts_digest
from stepdown.judges.report import RATINGS, Rating

JUDGE = "judge"
"""The score of the config's own judge: 1 where it passes an answer, 0 where it does not."""

_path = click.Path(path_type=Path)


@click.group("judge")
def command() -> None:
    """Try a judge on one answer, examine it on answers of known worth, or measure it against human ratings."""


command.add_command(exam_command)


@command.command("try")
@click.argument("case_file", metavar="[CASE]", required=False, type=_path)
@click.option("--config", type=_path, help="The config whose `protocol.judge` is asked. Without it, guards only.")
@click.option("--question", help="What was asked; with --evidence and --answer, in place of CASE.")
@click.option("--evidence", multiple=True, type=_path, help="A text file that the answer must rest on; repeatable.")
@click.option("--reference", multiple=True, help="An accepted answer: a hint at coverage; repeatable.")
@click.option("--answer", help="The answer to judge.")
@click.option("--json", "as_json", is_flag=True, help="Print the finding as JSON.")
def try_command(
    case_file: Path | None,
    config: Path | None,
    question: str | None,
    evidence: Sequence[Path],
    reference: Sequence[str],
    answer: str | None,
    as_json: bool,
) -> None:
    """Judge one answer and show everything that the verdict is based on.

    CASE is a JSON file: `{"kind": "rag"|"meeting"|"question", "turns": [{"speaker", "text"}], "evidence": [{"title",
    "text"}], "references": [text], "answer": text}`. The exit code is 0 for pass and fail alike, and 3 where no verdict
    came.

    \b
    stepdown judge try case.json --config run.yaml
    stepdown judge try --question "When does it open?" --evidence hours.txt --answer "At nine."
    """
    case = _read_case(case_file, question, evidence, reference, answer)
    if config is None:
        found = unsourced_items(case)
        if as_json:
            _print_json({"items": [item.to_json() for item in found]})
            return
        _print(_item_lines(found))
        _print(["no judge was asked: name a config with `protocol.judge` by --config"])
        return
    with configured.open_judges(load_config(config)) as judges:
        finding = judges.judge(case)
        requests = judges.requests
    if as_json:
        _print_json({"verdict": finding.verdict.value, "reason": finding.reason, **finding.to_json()})
    else:
        _print(_finding_lines(finding))
        _print([f"prompts {prompts_digest()[:12]}, case {case.digest[:12]}, {requests} calls made now"])
    if finding.verdict is Verdict.TECHNICAL:
        raise SystemExit(3)


def _read_case(
    file: Path | None, question: str | None, evidence: Sequence[Path], references: Sequence[str], answer: str | None
) -> JudgeCase:
    options = {"--question": question, "--evidence": evidence, "--answer": answer}
    if file is not None:
        if given := [name for name, value in [*options.items(), ("--reference", references)] if value]:
            raise BadInput(f"the CASE file has all of it: leave out {given[0]}", file=file)
        try:
            value = json.loads(read_text(file))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=file) from None
        return validated(JudgeCase, value, file=file)
    if missing := [name for name, value in options.items() if not value]:
        raise BadInput(f"name a CASE file, or give --question, --evidence and --answer ({missing[0]} is missing)")
    passages = [{"title": path.name, "text": read_text(path)} for path in evidence]
    turns = [{"speaker": "user", "text": question}]
    fields = {"turns": turns, "evidence": passages, "references": list(references), "answer": answer}
    return validated(JudgeCase, {"kind": "question", **fields})


@command.command("calibrate")
@click.argument("file", type=_path)
@click.option("--score", "scores", multiple=True, help="A recorded score to measure, or `guards`; all by default.")
@click.option("--threshold", "thresholds", multiple=True, type=float, help="A threshold to show; repeatable.")
@click.option("--target", default=0.1, show_default=True, help="P(pass | bad) that a chosen threshold may have.")
@click.option("--good", "least", default=3.0, show_default=True, help="Least median of every rating of a good answer.")
@click.option("--config", type=_path, help="Also ask the judge of this config about every answer: score `judge`.")
@click.option("--seed", default=0, show_default=True, help="Seed of the resampling.")
@click.option("--plot", type=_path, help="Draw it here, as .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def calibrate_command(
    file: Path,
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

    \b
    stepdown judge calibrate rated.jsonl --threshold 0.7 --plot calibration.svg
    """
    thresholds = thresholds or studies.DEFAULT_THRESHOLDS
    studies.check_options(thresholds, target, seed)
    answers = data.read_rated_answers(file, scores)
    if config is not None:
        answers = _add_judge_score(answers, config)
    result = studies.study(answers, thresholds, target, least, seed)
    if plot is not None:
        from stepdown.judges.calibration.plot import draw_plot

        rated = answers.rated
        values = {name: [one.scores[name] for one in rated] for name in rated[0].scores}
        draw_plot(plot, values, [one.is_good(least) for one in rated], target)
    if as_json:
        _print_json(studies.to_json(result))
    else:
        _print(studies.study_lines(result))


def _add_judge_score(answers: RatedAnswers, config: Path) -> RatedAnswers:
    """Ask the config's judge about every answer: the answers with its verdict as a further score.

    Answers without a verdict are left out and counted.
    """
    kept, without = [], 0
    with configured.open_judges(load_config(config)) as judges:
        for number, one in enumerate(answers.rated, 1):
            finding = judges.judge(one.case)
            click.echo(f"{number}/{len(answers.rated)} {finding.verdict.value}", err=True)
            if finding.verdict is Verdict.TECHNICAL:
                without += 1
            else:
                kept.append(replace(one, scores={**one.scores, JUDGE: float(finding.verdict is Verdict.PASS)}))
    if not kept:
        raise BadInput("the judge came to no verdict on any answer", file=config)
    left_out = {**answers.left_out, **({"no verdict of the judge": without} if without else {})}
    return RatedAnswers(tuple(kept), left_out)


# Output. Answers, evidence and reports are foreign text: control characters are removed before a terminal gets them.


def _print(lines: Sequence[str] | Iterator[str]) -> None:
    for line in lines:
        click.echo(printable(line, longest=2000))


def _print_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, indent=1))  # ASCII only: nothing in it moves a cursor


def _item_lines(items: Sequence[UnsourcedItem]) -> Iterator[str]:
    yield f"guards: items of the answer that are in no source: {len(items)}" if items else "guards: nothing to settle"
    for number, item in enumerate(items, 1):
        yield f"  {number}. {item.kind} {item.text!r} in {item.context!r}"


def _finding_lines(finding: PanelFinding) -> Iterator[str]:
    yield f"verdict: {finding.verdict.value}"
    if finding.reason:
        yield f"reason: {finding.reason}"
    yield from _item_lines(finding.items)
    for opinion in finding.opinions:
        yield from _opinion_lines(opinion)


def _opinion_lines(opinion: JudgeOpinion) -> Iterator[str]:
    yield f"judge {opinion.model}, draw {opinion.draw}: {opinion.verdict.value}"
    for problem in opinion.refused:
        yield f"  not used: {problem}"
    for reason in opinion.reasons:
        yield from _wrapped(f"  because: {reason.rule}: ", reason.found)
    report = opinion.report
    if report is None:
        return
    yield f"  its own word: {report.verdict} (changes nothing)"
    yield from _wrapped(f"  resolves the turn: {report.resolution.status}: ", report.resolution.reason)
    yield f"  stance: {report.stance}"
    for part in report.parts:
        yield from _wrapped(f"  part, {part.status}: ", part.part)
    for claim in report.claims:
        crucial = ", crucial" if claim.crucial else ""
        yield from _wrapped(f"  claim, {claim.kind}{crucial}, {claim.status}: ", claim.answer_quote)
        yield from _quote_lines(claim.evidence_quotes)
    for entry in report.items:
        yield from _wrapped(f"  item {entry.item}, {entry.status}: ", entry.note)
        yield from _quote_lines(entry.evidence_quotes)
    for name in RATINGS:
        rating: Rating = getattr(report, name)
        grounds = f" ({', '.join(rating.grounds)})" if rating.grounds else ""
        yield from _wrapped(f"  {name} {rating.rating}{grounds}: ", rating.reason)


def _quote_lines(quotes: Sequence[str]) -> Iterator[str]:
    for quote in quotes:
        yield from _wrapped("    evidence: ", quote)


def _wrapped(head: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(printable(head + text, longest=1500), 116, subsequent_indent="      ") or [head]
