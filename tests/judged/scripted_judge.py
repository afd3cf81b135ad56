"""A judge that can read and count, for tests: it holds each sentence of an answer against the evidence it is shown.

It knows nothing but what the prompt shows it, and reports as any judge does; whether the answer passes is for the
program to decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.provider import Answer, Request

COMMON = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "in", "is", "it", "of", "on", "so", "the", "to"}
)
"""Words that say nothing of what a sentence is about."""
NUMBERS = frozenset(
    {
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "fifteen",
        "twenty",
    }
    | {"thirty", "forty", "fifty", "sixty", "hundred", "thousand", "million", "half", "first", "second", "third"}
)
SUPPORTED = 0.6
"""The share of a sentence's telling words that the evidence must have."""
COVERED = 0.3
"""The share of a reference's telling words that the answer must have."""
LIST_MARK = re.compile(r"^[ \t]*(?:\d+[.)]|[-*•+>#]+)[ \t]+", re.MULTILINE)
LONGEST = 500
"""Characters of a quote."""


def telling(text: str) -> set[str]:
    """The words that say something."""
    return set(re.findall(r"\w+", text.casefold())) - COMMON


def share(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0


def blocks(prompt: str) -> dict[str, str]:
    """What the prompt shows, by name."""
    mark = re.escape(prompt.split("\n", 1)[0].rsplit(" ", 1)[1])
    found = re.findall(rf"^{mark} (?!end of )(.*)\n((?:.*\n)*?){mark} end of \1$", prompt, re.MULTILINE)
    return {name: text.removesuffix("\n") for name, text in found}


def shown_to(request: Request) -> dict[str, str]:
    """What a judge is shown of a case, by name."""
    return blocks(next(message["content"] for message in request["messages"] if message["role"] == "user"))


def quotable(text: str) -> list[str]:
    """The sentences of a text, none of them too long to be quoted."""
    found = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", LIST_MARK.sub("", text)):
        while len(sentence) > LONGEST:
            cut = sentence.rfind(" ", 1, LONGEST) if " " in sentence[1:LONGEST] else LONGEST
            found.append(sentence[:cut].strip())
            sentence = sentence[cut:]
        found.append(sentence.strip())
    return [sentence for sentence in found if telling(sentence)]


def claim(sentence: str, evidence: Sequence[str]) -> dict[str, Any]:
    """What the evidence says of a sentence: that it has most of its words, and all of its figures."""
    said, there = telling(sentence), telling("\n".join(evidence))
    figures = {word for word in said if word in NUMBERS or any(map(str.isdigit, word))}
    supported = share(said, there) >= SUPPORTED and figures <= there
    best = max(evidence, key=lambda piece: share(said, telling(piece)))
    holding = [next(piece for piece in evidence if one in telling(piece)) for one in sorted(figures & there)]
    return {
        "answer_quote": sentence,
        "kind": "number" if figures else "other",
        "crucial": True,
        "status": "supported" if supported else "unsupported",
        "evidence_quotes": list(dict.fromkeys([best, *holding]))[:8] if supported else [],
    }


def item(line: str, evidence: Sequence[str]) -> dict[str, Any]:
    """Whether the evidence has a listed item after all."""
    number, kind, text, said = re.match(r"(\d+)\. (\w+) ['\"](.*?)['\"]( \(the user said it\))? in: ", line).groups()  # type: ignore[union-attr]
    if kind == "sentence":
        found = claim(text, evidence)
        return {"item": int(number), "status": found["status"], "evidence_quotes": found["evidence_quotes"]}
    where = next((piece for piece in evidence if text.casefold() in piece.casefold()), None)
    status = "supported" if where else "given" if said else "unsupported"
    return {"item": int(number), "status": status, "evidence_quotes": [where] if where else []}


def observed(shown: dict[str, str]) -> dict[str, Any]:
    """The report on what is shown."""
    pieces = [quote for name, text in shown.items() if name.startswith("evidence") for quote in quotable(text)]
    evidence = [
        quote for quote in pieces if " " in quote
    ] or pieces  # one word alone, as the E. of E. coli, says nothing
    answer = quotable(shown["candidate's answer"])
    claims = [claim(sentence, evidence) for sentence in answer]
    said = telling(shown["candidate's answer"])
    references = [text for name, text in shown.items() if name.startswith("reference answer")]
    complete = bool(answer) and all(share(telling(text), said) >= COVERED for text in references)
    rests = all(one["status"] == "supported" for one in claims)
    listed = shown.get("items of the answer to settle", "").splitlines()
    return {
        "parts": [
            {"part": "what is asked for", "status": "given", "answer_quote": answer[0]}
            if complete
            else {"part": "what is asked for", "status": "missing"}
        ],
        "stance": "answers",
        "resolution": {"status": "completely" if complete else "not", "reason": "by the words of the reference"},
        "claims": claims or [{"answer_quote": "?", "kind": "other", "crucial": True, "status": "unsupported"}],
        "items": [item(line, evidence) for line in listed],
        "faithfulness": {"reason": "by the words of the evidence", "rating": 5 if rests else 1},
        "appropriateness": {"reason": "none", "rating": 5},
        "completeness": {"reason": "by the words of the reference", "rating": 5 if complete else 1},
        "verdict": "passed" if rests and complete else "failed",
    }


def judge(request: Request) -> Answer:
    """The ability of a model that judges. Asked again, it says the same."""
    report = observed(shown_to(request))
    return Answer(tool_calls=(("report", json.dumps(report)),))
