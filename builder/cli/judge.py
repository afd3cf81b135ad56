"""`stepdown judge`: try a judge on one answer, and measure judges against people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from stepdown.builder.cli.documents import print_document
from stepdown.builder.cli.judge_calibrate import calibrate_command
from stepdown.builder.cli.judge_exam import exam_command
from stepdown.builder.cli.judge_output import print_lines
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.validation import read_text, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Verdict
from stepdown.judges import configured
from stepdown.judges.case import JudgeCase
from stepdown.judges.guards import UnsourcedItem, unsourced_items
from stepdown.judges.panel import JudgeOpinion, PanelFinding
from stepdown.judges.prompts import prompts_digest
from stepdown.judges.report import RATINGS, Rating

_path = click.Path(path_type=Path)


@click.group("judge")
def command() -> None:
    """Try a judge on one answer, examine it on answers of known worth, or measure it against human ratings."""


command.add_command(exam_command)
command.add_command(calibrate_command)


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
            print_document({"items": [item.to_json() for item in found]})
            return
        print_lines(_item_lines(found))
        print_lines(["no judge was asked: name a config with `protocol.judge` by --config"])
        return
    with configured.open_judges(load_config(config)) as judges:
        finding = judges.judge(case)
        requests = judges.requests
    if as_json:
        print_document({"verdict": finding.verdict.value, "reason": finding.reason, **finding.to_json()})
    else:
        print_lines(_finding_lines(finding))
        print_lines([f"prompts {prompts_digest()[:12]}, case {case.digest[:12]}, {requests} calls made now"])
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
