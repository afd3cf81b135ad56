"""The verdicts that a reviewer can give, and the records that the audit's store gives back."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from stepdown.builder.common.text import is_id
from stepdown.builder.errors import BadInput

LONGEST_NAME = 80
LONGEST_NOTES = 20_000
"""Characters."""


class AuditVerdict(StrEnum):
    """A reviewer's answer to: would one tier lower still handle this step? (paper, section 5)"""

    TIGHT = "tight"
    UNCERTAIN = "uncertain"
    LOWER = "further-downgradeable"


class AuditStep(NamedTuple):
    """A labelled step that can be or is sampled: what is known of it without reading its messages.

    A tuple, since one is made for every step of a run where a sample is drawn.
    """

    id: str
    """benchmark/instance_id/step_index."""
    benchmark: str
    instance_id: str
    step_index: int
    tier: str
    """The label."""
    tier_id: int
    lowest: bool
    """Whether the label is the cheapest tier. Nothing is lower than that, so it can only be tight."""
    below: str
    """Digest of the models one tier below the label."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict that stands: its reviewer's latest on its step that was not taken back."""

    step_id: str
    reviewer: str
    verdict: AuditVerdict
    notes: str
    prefix_digest: str
    """Exact digest of the prefix that the reviewer was shown."""
    at: str
    """UTC, ISO 8601, to the second."""
    source: str
    """`page`, `import`, `carried` (from the run that this one relabels), or a server: `argilla`, `label-studio`."""


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A sampled step in one reviewer's queue, with what that reviewer said of it, if anything."""

    step: AuditStep
    verdict: AuditVerdict | None
    notes: str
    at: str | None

    @property
    def done(self) -> bool:
        return self.verdict is not None


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """How far one reviewer has come."""

    total: int
    done: int
    tight: int
    uncertain: int
    lower: int


@dataclass(frozen=True, slots=True)
class PreLabel:
    """A model's guess at a step's audit verdict. Shown only after the reviewer has answered, so that it cannot lead."""

    verdict: AuditVerdict
    notes: str


@dataclass(frozen=True, slots=True)
class ReviewedStep:
    """A sampled step with every reviewer's verdict that stands."""

    step: AuditStep
    said: tuple[RecordedVerdict, ...]
    awaited: int
    """How many of the reviewers whom the step was assigned to have not answered."""
    awaited_by: tuple[str, ...] = ()
    """Their names, as far as they are known."""


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision that was applied, or taken back."""

    number: int
    action: str
    """`applied` or `undone`."""
    manifest: str
    """Digest of the revision's manifest."""
    at: str


@dataclass(frozen=True, slots=True)
class FormerVerdict:
    """A verdict from the run that this one relabels, which does not hold here any more."""

    reviewer: str
    verdict: AuditVerdict
    notes: str
    at: str
    why: str
    """What has changed since."""


def reviewer_name(name: str, *, field: str = "reviewer") -> str:
    """The name as it is stored. Characters are composed (NFC), so that two spellings of a name are one reviewer.

    Raises BadInput for a name that cannot stand in a table, a file or an address.

    >>> reviewer_name(" ann ")
    'ann'
    """
    clean = unicodedata.normalize("NFC", name.strip())
    if not is_id(clean) or len(clean) > LONGEST_NAME or clean in {".", ".."} or {"/", "\\"} & set(clean):
        raise BadInput(f"a reviewer's name is 1 to {LONGEST_NAME} printable characters, no slashes", field=field)
    return clean


def look_alike(name: str, others: Iterable[str]) -> str | None:
    """The first other name that differs only in capitals, spaces, or the form of its characters; None if there is none.

    >>> look_alike("Ann B", ["bob", "ann  b"])
    'ann  b'
    """
    return next((other for other in others if other != name and _folded(other) == _folded(name)), None)


def _folded(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def audit_verdict(text: str, *, field: str = "verdict") -> AuditVerdict:
    """The verdict that a text names. Raises BadInput where it names none.

    >>> audit_verdict("tight")
    <AuditVerdict.TIGHT: 'tight'>
    """
    try:
        return AuditVerdict(text)
    except ValueError:
        known = ", ".join(verdict.value for verdict in AuditVerdict)
        raise BadInput(f"{text[:60]!r} is no verdict; known are {known}", field=field) from None
