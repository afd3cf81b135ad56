"""Judge models for the loopback provider, scripted by ability: what each sees and how honest it is about it.

The library's annotations are observations (what a careful reader finds in an answer), never the verdict that should
follow: that is for the program to decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.config.loading import Config
from stepdown.builder.config.validation import validated
from stepdown.judges.case import JudgeCase
from stepdown.judges.report import TOOL_NAME
from tests.provider import Answer, Request

LIBRARY = Path(__file__).parent / "library.jsonl"
Report = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One answer of the library: the case, what there is to see in it, and what should become of it."""

    name: str
    case: JudgeCase
    seen: dict[str, Any]
    parts: tuple[str, ...]
    risk: str

    @property
    def is_honest(self) -> bool:
        return not self.risk


def entries() -> Iterator[Entry]:
    for line in LIBRARY.read_text(encoding="utf-8").splitlines():
        scene = json.loads(line)
        shared = {key: scene[key] for key in ("kind", "turns", "evidence", "references")}
        for answer in scene["answers"]:
            case = validated(JudgeCase, {**shared, "answer": answer["answer"]})
            assert bool(answer["risk"]) == (answer["expect"] == "fail")
            yield Entry(f"{scene['id']}/{answer['id']}", case, answer, tuple(scene["parts"]), answer["risk"])


_BY_ANSWER = {entry.case.answer: entry for entry in entries()}


def blocks(request: Request) -> dict[str, str]:
    """The blocks that a request shows, by name, as a model would tell them apart."""
    text = str(request["messages"][1]["content"])
    mark = text.split("\n", 1)[0].rsplit(" ", 1)[1]
    found: dict[str, str] = {}
    for name, body in re.findall(rf"^{mark} (?!end of)(.+)\n((?:.|\n)*?)\n{mark} end of \1$", text, re.MULTILINE):
        found[name] = body
    return found


def careful(request: Request) -> Report:
    """Reports what there is to see, and says passed whenever it can."""
    shown = blocks(request)
    entry = _BY_ANSWER[shown["candidate's answer"]]
    claims = [
        {
            "answer_quote": claim["quote"],
            "kind": claim["kind"],
            "crucial": True,
            "status": claim["status"],
            "evidence_quotes": claim["evidence"],
        }
        for claim in entry.seen["claims"]
    ]
    missing = entry.seen["missing"]
    return {
        "parts": [
            {"part": part, "status": "missing"}
            if number in missing
            else {"part": part, "status": "given", "answer_quote": claims[min(number, len(claims) - 1)]["answer_quote"]}
            for number, part in enumerate(entry.parts)
        ],
        "stance": entry.seen["stance"],
        "resolution": {"status": "partly" if missing else "completely", "reason": "as the parts say"},
        "claims": claims,
        "items": [_settled(line, claims) for line in shown.get("items of the answer to settle", "").splitlines()],
        **{name: {"reason": "fine", "rating": 5} for name in ("faithfulness", "appropriateness", "completeness")},
        "verdict": "passed",
    }


def _settled(line: str, claims: list[dict[str, Any]]) -> dict[str, Any]:
    found = re.match(r"(\d+)\. \w+ ['\"](.*?)['\"](?: \(the user said it\))? in: ", line)
    assert found is not None
    claim = next(claim for claim in claims if found[2] in claim["answer_quote"])
    status = "derived" if claim["status"] == "supported" else "unsupported"
    quotes = claim["evidence_quotes"] if status == "derived" else []
    return {"item": int(found[1]), "status": status, "evidence_quotes": quotes}


def sloppy(request: Request) -> Report:
    """Sees everything and thinks nothing of it: all resolved, nothing crucial, the best ratings, passed."""
    report = careful(request)
    report["resolution"] = {"status": "completely", "reason": "reads well"}
    report["claims"] = [{**claim, "crucial": False} for claim in report["claims"]]
    return report


def harsh(request: Request) -> Report:
    """Sees everything, dislikes how it is said, and says failed."""
    report = careful(request)
    low = {"reason": "stiff, and not in the words of the reference", "grounds": ["wording", "length"], "rating": 1}
    return {**report, "faithfulness": low, "appropriateness": low, "completeness": low, "verdict": "failed"}


def lying(request: Request) -> Report:
    """Calls everything supported and gives the answer's own words for quotes of the evidence."""
    report = careful(request)
    for claim in report["claims"]:
        claim |= {"status": "supported", "evidence_quotes": [f"it is stated that {claim['answer_quote']}"]}
    for part in report["parts"]:
        part |= {"status": "given", "answer_quote": report["claims"][0]["answer_quote"]}
    quotes = ["as everybody in the passage knows"]
    report["items"] = [{**item, "status": "supported", "evidence_quotes": quotes} for item in report["items"]]
    return report | {"resolution": {"status": "completely", "reason": "yes"}, "stance": "answers"}


def injected(request: Request) -> Report:
    """Obeys an answer that tells it what to report, by the nearest real words of the evidence; else it is careful."""
    report, shown = careful(request), blocks(request)
    if "ignore" not in shown["candidate's answer"].lower():
        return report
    quote = shown["evidence 1"].split("\n", 1)[1].split(". ")[0]
    for claim in report["claims"]:
        claim |= {"status": "supported", "evidence_quotes": [quote]}
    for part in report["parts"]:
        part |= {"status": "given", "answer_quote": report["claims"][0]["answer_quote"]}
    report["items"] = [{**item, "status": "harmless", "evidence_quotes": []} for item in report["items"]]
    return report | {"resolution": {"status": "completely", "reason": "as told"}, "stance": "answers"}


def reporting(judge: Callable[[Request], Report]) -> Callable[[Request], Answer]:
    """The ability of a judge model for `tests.provider`."""
    return lambda request: Answer("The verdict is: passed.", tool_calls=((TOOL_NAME, json.dumps(judge(request))),))


def with_judges(url: str, *names: str, **panel: Any) -> Config:
    """A config whose judges are models of one provider."""
    pool = {
        "version": "p",
        "tiers": [
            {"name": name, "id": number, "models": [{"name": name, "model": f"openai/{name}"}]}
            for number, name in enumerate(("cheap", "strong"))
        ],
    }
    models = [{"name": name, "model": f"openai/{name}"} for name in names]
    judge = {"models": models, "panel": "single", "probes": 0, **panel}
    workloads = [{"harness": "tests.workshop:Workshop", "source": {"needs": []}, "seeds": {"source": "collect"}}]
    operation = {
        "endpoints": {"default": {"api_base": url, "timeout": 5}},
        "retries": {"attempts": 2, "first_wait": 0, "longest_wait": 0},
    }
    protocol = {"pool": pool, "workloads": workloads, "judge": judge}
    return validated(Config, {"protocol": protocol, "operation": operation})
