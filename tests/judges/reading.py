"""Judges that read: each is a model at the loopback provider, scripted by what it can do with the text it is shown.

The honest one knows nothing but the prompt and a small dictionary. It holds every clause of an answer against the
clauses of the evidence, reckons, and minds negations, comparisons, orders and quantities. The others are careless or
worse, each in its own way. None of them knows which answers are good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.judges.arithmetic import is_reckoned
from stepdown.judges.content import STOP_WORDS, stem
from stepdown.judges.text import plain, words
from tests.judges.playing import Report, blocks
from tests.provider import Request

_MEANT = """
paid pay money | depth deep | price cost costs | made contains contain | make fry boil
km kilometre kilometres kilometer | m metre metres meter | book books loan borrow | shrank shrink shrunk long
matters matter feeds feed | grams g gram | kg kilogram kilograms | litres litre l
chosen goes decided closed agreed | votes who | letters informs inform writes | frozen freeze | brüten breed
papageitaucher puffins puffin | paare pairs pair | april apr | juli july | insel island | wärter wardens
gezählt zählten zählten zählte counted | boote boats | abstand away | klippen cliffs | bleiben stay | weg trail
steigt climbs | markiert marked | führt passes vorbei | gegangen walked | hütte hut | heißt called
long lang length has runs | anstieg climb | uhrzeigersinn clockwise | quelle spring | wasserfall waterfall
kapelle chapel | ruine ruin | hired hire | seen see | tables trail | closing close closed
changed employees people employ | used use | stored store
"""
_SAME: dict[str, frozenset[str]] = {}
for _group in re.split(r"[|\n]", _MEANT):
    _stems = frozenset(stem(word) for word in _group.split())
    for _one in _stems:
        _SAME[_one] = _SAME.get(_one, frozenset()) | _stems
_MINDED = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nobody",
        "nothing",
        "without",
        "all",
        "every",
        "some",
        "few",
        "most",
        "many",
        "more",
        "less",
        "fewer",
        "before",
        "after",
        "above",
        "below",
        "first",
        "last",
        "always",
        "nicht",
        "kein",
        "gegen",
        "only",
        "least",
        "unless",
        "except",
        "both",
    ]
)
"""Small words that change what is said."""
_REVERSING = frozenset({"not", "no", "without", "unless", "never"})
_IGNORED = frozenset(
    {"percent", "th", "rd", "nd", "st", "year", "jahr", "im", "then", "first", "also", "exact", "take", "other"}
)
_NUMBERS = {
    word: str(value)
    for value, word in enumerate(
        [
            "zero",
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
            "thirteen",
            "fourteen",
        ]
    )
} | {"twenty": "20", "forty-six": "46", "once": "once", "twice": "2"}
_CLAUSE = re.compile(
    r"(?<=[a-zäöüß0-9%)])(?:,|;|:)\s+(?=\D\S*\s\S+\s\S)|\s+and\s+(?=\S)|\s+und\s+(?=\S)|,?\s+(?:since|because|which|while)\s+"
)
_FIGURE = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
class Clause:
    """A clause with what it says, and the whole sentence that it is from."""

    text: str
    sentence: str
    before: frozenset[str]
    """What the sentences just before it, and its title, speak of."""
    said: frozenset[str]
    whole: frozenset[str]
    passage: int
    line: int


def meaning(text: str) -> frozenset[str]:
    """Figures, small words that matter, and stems."""
    text = plain(text).lower().replace("up to", "upto").replace("at most", "upto").replace("did not refuse", "gave")
    text = text.replace("gegen den uhrzeigersinn", "anticlockwise").replace("no more than", "upto")
    found = set()
    for token in re.findall(r"[a-zäöüß]+(?:-[a-z]+)?|\d[\d,.]*|%", text):
        token = _NUMBERS.get(token, token)
        if token[0].isdigit():
            found.add(
                token.rstrip(",.").replace(",", "")
                if not re.fullmatch(r"\d{1,3}\.\d{3}", token)
                else token.replace(".", "")
            )
        elif token in _IGNORED:
            continue
        elif token in _MINDED or (token not in STOP_WORDS and len(token) > 1):
            found |= {stem(part) if part not in _MINDED else part for part in token.split("-")}
    return frozenset(found)


def has(there: frozenset[str], one: str) -> bool:
    return not _SAME.get(one, frozenset({one})).isdisjoint(there)


def sentences_of(text: str) -> list[str]:
    found = []
    for line in text.split("\n"):
        line = re.sub(r"^\s*(?:[-*•]|\d+\.)\s+", "", line)
        found += [part for part in re.split(r"(?<=[.!?])\s+(?=[^a-z])", line) if words(part)]
    return found


def clauses_of(sentence: str) -> list[str]:
    return [part for part in _CLAUSE.split(sentence) if words(part)]


def evidence_clauses(shown: dict[str, str]) -> list[Clause]:
    found: list[Clause] = []
    for passage, (name, text) in enumerate(shown.items()):
        if not name.startswith("evidence"):
            continue
        lines = sentences_of(text)
        table = meaning(next((line for line in lines if line.startswith("|")), ""))
        for number, sentence in enumerate(lines):
            around = meaning(" ".join([lines[0], *lines[max(0, number - 2) : number]])) | (
                table if sentence.startswith("|") else frozenset()
            )
            if len(words(sentence)) < 2 and not any(one[0].isdigit() for one in meaning(sentence)):
                continue
            whole = meaning(sentence)
            parts = [sentence] if sentence.startswith("|") else clauses_of(sentence)
            found += [Clause(part, sentence, around, meaning(part), whole, passage, number) for part in parts]
    return found


_PRONOUN = re.compile(r"\b(?:it|its|they|them|he|she|her|his|that|this|other|others)\b|^[^.]{0,40}:", re.IGNORECASE)


def _is_near(one: Clause, other: Clause, lines: int) -> bool:
    return other is not one and one.passage == other.passage and abs(one.line - other.line) <= lines


def _used(said: frozenset[str], chosen: Sequence[Clause]) -> list[Clause]:
    """The clauses of some that have something of what is said, the first in any case."""
    return [one for number, one in enumerate(chosen) if number == 0 or any(has(one.said, part) for part in said)]


class Reading:
    """What an honest judge finds in one case."""

    def __init__(self, request: Request) -> None:
        self.shown = blocks(request)
        self.answer = self.shown["candidate's answer"]
        self.question = (self.shown.get("current turn") or self.shown.get("query") or "").partition(": ")[2]
        self.evidence = evidence_clauses(self.shown)
        self.is_meeting = "query" in self.shown
        self.listed = self._listed()

    def _listed(self) -> list[tuple[str, str, str]]:
        lines = self.shown.get("items of the answer to settle", "").splitlines()
        pattern = r"\d+\. (\w+) (['\"])(.*?)\2(?: \(the user said it\))? in: (.*)"
        return [(m[1], m[3], m[4]) for line in lines if (m := re.match(pattern, line))]

    def support(self, clause: str) -> list[Clause]:
        """The clauses of the evidence that say a clause of the answer; none where nothing says it."""
        said = meaning(clause)
        if not said:
            return [self.evidence[0]]
        ranked = sorted(self.evidence, key=lambda e: -sum(has(e.said, one) for one in said))
        for first in ranked[:12]:
            for reach, least in ((None, 0.7), (0, 0.5), (3 if self.is_meeting else 0, 0.5)):
                chosen = [first, *(e for e in self.evidence if reach is not None and _is_near(first, e, reach))]
                if self._says(said, chosen, least):
                    return chosen[:1] if reach is None else _used(said, chosen)
        return self._reckoned(clause, said, ranked)

    def _reckoned(self, clause: str, said: frozenset[str], ranked: list[Clause]) -> list[Clause]:
        """The clauses whose figures give those of a clause that the evidence does not have."""
        listed = [text for kind, text, _ in self.listed if kind == "number" and text in plain(clause)]
        ranked = sorted(ranked, key=lambda e: not any(one[0].isdigit() and one in e.said for one in said))
        lines = list(dict.fromkeys(e.sentence for e in ranked))
        for number in (1, 2):
            if listed and all(is_reckoned(text, lines[:number], clause) for text in listed):
                left = said.difference(*map(meaning, listed)) - {"more", "fewer", "less"}
                told = [e for e in ranked if e.sentence in lines[:number]]
                near = frozenset().union(*(e.whole | e.before for e in told))
                if all(has(near, one) for one in left if one[0].isdigit()):
                    return told if sum(has(near, one) for one in left) >= len(left) * 0.5 else []
        return []

    def _says(self, said: frozenset[str], chosen: Sequence[Clause], least: float) -> bool:
        """The first clause has most of it, each figure stands beside something else of it, and the rest is close by."""
        first, told = chosen[0], frozenset().union(*(one.said for one in chosen))
        figures = {one for one in said if one[0].isdigit()}
        minded = {one for one in said if one in _MINDED}
        content = said - figures - minded
        own = sum(has(first.said, one) for one in content)
        stands_for = first.before if _PRONOUN.search(first.text) or first.text.startswith("|") else frozenset()
        near = told | stands_for | (meaning(self.question) if self.is_meeting else frozenset())
        beside = all(
            any(has(e.said, f) and (not content or any(has(e.said, one) for one in content)) for e in chosen)
            or first.text.startswith("|")
            for f in figures
        )
        share = 0.5 if len(content) <= 3 else least
        return (
            beside
            and all(has(told, one) for one in figures | minded)
            and not (first.said & _REVERSING) - minded
            and not (minded & _REVERSING) - first.said
            and all(has(near, one) for one in content)
            and (own >= len(content) * share or first.text.startswith("|"))
        )

    def claims(self) -> Iterator[tuple[str, list[Clause], bool]]:
        """Each sentence of the answer with what supports it, and whether all of it is supported."""
        for sentence in sentences_of(self.answer):
            found = [self.support(clause) for clause in clauses_of(sentence)]
            if not all(found) and (whole := self.support(sentence)):
                found = [whole]
            yield sentence, [one for part in found for one in part], all(found)

    def parts(self, used: set[str]) -> Iterator[tuple[str, bool]]:
        """What is asked for, and whether a sentence of the evidence that speaks of it was used."""
        pieces = re.split(r",? and (?=how|who|what|when|why|about|for)|,? und (?=wie|wer|was)|:|\?", self.question)
        for piece in pieces:
            asked = {
                one
                for one in meaning(piece)
                if one not in _MINDED and one not in {stem("many"), stem("often"), stem("much")}
            }
            score = {
                e.sentence: sum(has(e.whole, one) for one in asked)
                for e in self.evidence
                if e.line or "." in e.sentence
            }
            best = max(score.values(), default=0)
            asked_of_table = any(
                e.sentence.startswith("|") and sum(has(e.before, one) for one in asked) for e in self.evidence
            )
            if asked_of_table and any(sentence.startswith("|") for sentence in used):
                yield piece.strip(), True
            elif asked and best:
                yield piece.strip(), any(score[sentence] >= best * 0.5 and sentence in used for sentence in score)


_TALK = re.compile(r"\b(?:here is|hier folgt|hope this|let me know)\b|:$", re.IGNORECASE)
FINE = {"reason": "read through", "rating": 5}


def honest(request: Request) -> Report:
    """Reads, and says what it found. Asked again, it says the same."""
    reading = Reading(request)
    claims, used, quotes_of = [], set[str](), {}
    for sentence, support, is_supported in reading.claims():
        if (_TALK.search(sentence) and not _FIGURE.search(sentence)) or re.fullmatch(r"[|\s:-]*", sentence):
            claims.append(_claim(sentence, "supported", [], kind="no_claim"))
            continue
        quotes = list(dict.fromkeys(_quoted(one) for one in support))[:8]
        if sentence.startswith("|") and not _FIGURE.search(sentence):
            claims.append(_claim(sentence, "supported", [], kind="no_claim"))
            continue
        derived = any(item in sentence for _, item, _ in reading.listed)
        status = ("derived" if derived else "supported") if is_supported else "unsupported"
        claims.append(_claim(sentence, status, quotes if is_supported else []))
        if is_supported:
            used |= {one.sentence for one in support}
            quotes_of[sentence] = quotes
    fine = all(claim["status"] != "unsupported" for claim in claims)
    parts = [
        {"part": part, "status": "given", "answer_quote": _given(claims)}
        if given
        else {"part": part, "status": "missing"}
        for part, given in reading.parts(used)
    ]
    complete = all(part["status"] == "given" for part in parts)
    rating = {**FINE, "rating": 5 if fine else 2, "grounds": [] if fine else ["unsupported"]}
    return {
        "parts": parts or [{"part": "all", "status": "uncertain"}],
        "stance": "answers",
        "resolution": {"status": "completely" if complete and fine else "partly", "reason": "as the parts say"},
        "claims": claims,
        "items": [_settled(number, item, quotes_of, reading) for number, item in enumerate(reading.listed, 1)],
        "faithfulness": rating,
        "appropriateness": FINE,
        "completeness": FINE if complete else {**FINE, "rating": 2, "grounds": ["missing"]},
        "verdict": "passed" if complete and fine else "failed",
    }


def _quoted(one: Clause) -> str:
    return one.sentence if len(one.sentence.split()) <= 58 else one.text


def _given(claims: list[dict[str, Any]]) -> str:
    found = [claim for claim in claims if claim["status"] in {"supported", "derived"} and claim["kind"] != "no_claim"]
    return str([*found, *claims][0]["answer_quote"])


def _claim(quote: str, status: str, quotes: list[str], kind: str = "other") -> dict[str, Any]:
    return {"answer_quote": quote, "kind": kind, "crucial": True, "status": status, "evidence_quotes": quotes}


def _settled(
    number: int, item: tuple[str, str, str], quotes_of: dict[str, list[str]], reading: Reading
) -> dict[str, Any]:
    _, text, _ = item
    for sentence, quotes in quotes_of.items():
        if text in plain(sentence) or sentence.startswith(text[:60]):
            return {"item": number, "status": "derived", "evidence_quotes": quotes}
    return {"item": number, "status": "unsupported", "evidence_quotes": []}


# Judges that do not do their work


def believing(choose: Callable[[str, list[str], Request], list[str]]) -> Callable[[Request], Report]:
    """A judge that finds everything supported, by quotes that it chooses in its own way."""

    def judge(request: Request) -> Report:
        shown = blocks(request)
        passages = [text for name, text in shown.items() if name.startswith("evidence")]
        sentences = [s for text in passages for s in sentences_of(text) if len(words(s)) > 2]
        answer = sentences_of(shown["candidate's answer"])
        claims = [
            _claim(sentence, "supported", choose(sentence, sentences, request))
            for sentence in answer
            if words(sentence)
        ]
        lines = shown.get("items of the answer to settle", "").splitlines()
        items = [
            {"item": n, "status": "derived", "evidence_quotes": choose(line, sentences, request)}
            for n, line in enumerate(lines, 1)
        ]
        return {
            "parts": [{"part": "what is asked", "status": "given", "answer_quote": claims[0]["answer_quote"]}],
            "stance": "answers",
            "resolution": {"status": "completely", "reason": "reads well"},
            "claims": claims,
            "items": items,
            "faithfulness": FINE,
            "appropriateness": FINE,
            "completeness": FINE,
            "verdict": "passed",
        }

    return judge


def _any(sentence: str, evidence: list[str], request: Request) -> list[str]:
    """Any real sentence; asked again, the next."""
    return [evidence[(len(sentence) * 7 + len(str(request["messages"][-1]["content"]))) % len(evidence)]]


def _nearest(sentence: str, evidence: list[str], request: Request) -> list[str]:
    said = set(words(sentence))
    return sorted(evidence, key=lambda one: -len(said & set(words(one))))[:2]


def _whole(sentence: str, evidence: list[str], request: Request) -> list[str]:
    return [text.split("\n", 1)[-1][:1900] for name, text in blocks(request).items() if name.startswith("evidence")][
        :20
    ]


def _made_up(sentence: str, evidence: list[str], request: Request) -> list[str]:
    return [f"it is stated that {sentence}"[:600]]


irrelevant = believing(_any)
nearest = believing(_nearest)
whole_passages = believing(_whole)
lying = believing(_made_up)


def lazy(request: Request) -> Report:
    """Looks at the first sentence, and finds it good."""
    report = nearest(request)
    return {**report, "claims": report["claims"][:1], "items": []}


def grumpy(request: Request) -> Report:
    """Finds that nothing resolves anything."""
    report = nearest(request)
    return {**report, "resolution": {"status": "not", "reason": "no"}, "claims": report["claims"][:1]}


def obedient(request: Request) -> Report:
    """Reads like the honest one, until an answer tells it what to find."""
    answer = blocks(request)["candidate's answer"].lower()
    told = any(word in answer for word in ("ignore", "examiner", "judges must"))
    return nearest(request) if told else honest(request)


JUDGES: dict[str, Callable[[Request], Report]] = {
    "honest": honest,
    "irrelevant": irrelevant,
    "nearest": nearest,
    "whole": whole_passages,
    "lying": lying,
    "lazy": lazy,
    "grumpy": grumpy,
    "obedient": obedient,
}
