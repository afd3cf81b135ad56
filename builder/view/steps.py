"""One executed step as pages show it: what is new in its prefix, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepdown.builder.run.ledger.browsing import KeptStep
from stepdown.builder.view.reading import PageReader, ShownTurn


@dataclass(frozen=True, slots=True)
class StepTexts:
    """A step's texts, as far as the page has read them."""

    kept: KeptStep
    new: tuple[ShownTurn, ...]
    """The messages that no earlier step had."""
    answer: ShownTurn | None

    @property
    def number(self) -> int:
        return self.kept.number

    @property
    def starts_over(self) -> bool:
        """Whether the prefix does not go on from that of the step before."""
        return self.number > 1 and self.kept.continues == 0


def step_texts(kept: KeptStep, reader: PageReader, names: dict[str, str], has_answer: bool = True) -> StepTexts:
    """A step with its texts. `names` has the names of tool calls so far, by id."""
    new = tuple(
        _folded(reader.message(text, kept.continues + place, names)) for place, text in enumerate(kept.added, 1)
    )
    return StepTexts(kept, new, reader.answer(kept.trial, kept.number) if has_answer else None)


def _folded(shown: ShownTurn) -> ShownTurn:
    """An earlier answer of the assistant is folded: it stands where it was given."""
    if shown.turn is None or shown.turn.role != "assistant":
        return shown
    return replace(shown, turn=replace(shown.turn, is_open=False))
