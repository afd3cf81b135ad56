"""All that is tried on a harness, one check after another."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepdown.builder.common.faults import Place, class_place, part_place, place_of
from stepdown.builder.engine.replay import no_answer
from stepdown.builder.records import FIRST, Instance, Response, Ruling, Verdict, canonical_json
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.harnesses.checked import Unsound, answered, opened, unsound_instance
from stepdown.testing.altered import broken_answers, other_answers
from stepdown.testing.elsewhere import is_named, told_by, told_in_a_fresh_interpreter
from stepdown.testing.hostile import hostile_answers, withstood
from stepdown.testing.playing import Play, after, continued, end_of, played
from stepdown.testing.rulings import unsound_parts
from stepdown.testing.words import Breach, raised, said, where_different

LONGEST = 1000
"""Steps after which a reference that has not come to its end is taken to come to none."""
Answers = Callable[[Instance], Sequence["Response | str"]]
"""The answers that bring an episode of an instance to its end; text stands for an answer without a call."""


class Suite:
    """One harness class with the options and the source that it is tried on."""

    def __init__(
        self,
        made: type[Harness],
        source: dict[str, Any],
        options: dict[str, Any],
        answers: Answers | None,
        folder: Path,
        models: Sequence[str] = (),
    ) -> None:
        """`models` are further pseudo-models, whose answers are tried as wrong ones."""
        self._models = models
        self._class, self._source, self._options, self._answers = made, source, options, answers
        self._folder = folder

    def make(self) -> Harness:
        """A harness of its own, told where to keep files as a run tells it."""
        harness = self._class(**self._options)
        harness.keep_in(self._folder / "kept")
        return harness

    def breaches(self, most: int) -> Iterator[Breach]:
        """Everything that is found. What can only follow from it is not looked at."""
        if not issubclass(self._class, Harness):
            yield Breach("it is no class made of `stepdown.Harness`")
            return
        harness = self.make()
        yield from self._guarded("its name and version", lambda: self._named(harness), class_place(self._class))
        instances: list[Instance] = []
        asked = part_place(self._class, "instances")
        selected = list(self._guarded("its instances", lambda: self._selected(harness, instances), asked))
        yield from selected
        if selected and not instances:
            return
        played = 0
        found: dict[Breach, list[str]] = {}
        opens = part_place(self._class, "open")
        for instance in [one for one in instances if one.dropped is None][:most]:
            played += 1
            for wrong in self._guarded("an episode", lambda one=instance: self._episodes(harness, one), opens):  # type: ignore[misc]
                found.setdefault(wrong, []).append(instance.id)
        for wrong, ids in found.items():
            also = f" (also {', '.join(ids[1:])})" if len(ids) > 1 else ""
            yield Breach(f"{ids[0]}: {wrong}{also}", wrong.place)
        if not played:
            yield Breach("its source selects no instance that could be played", asked)

    def _guarded(
        self, what: str, check: Callable[[], Iterator[str | Breach]], home: Place | None = None
    ) -> Iterator[Breach]:
        """A check's breaches, which stand at `home` unless they know their place; what it raises is one."""
        try:
            for wrong in check():
                yield Breach(wrong, home) if isinstance(wrong, str) else Breach(wrong.words, wrong.place or home)
        except Unsound as error:
            yield Breach(error.reason, home)
        except Exception as error:
            yield Breach(f"{what}: raises {raised(error)}", place_of(error, self._class.__module__) or home)

    # The harness

    def _named(self, harness: Harness) -> Iterator[str]:
        for part in ("name", "version"):
            if not isinstance(getattr(harness, part, None), str) or not getattr(harness, part):
                yield f"`{part}` is no text"
            elif part == "name" and "/" in harness.name:
                yield f"`name` must not hold a slash: {harness.name!r}"
        harness.refuse_misspelt(vars(harness))
        if self.make().version != harness.version:
            yield "`version` is another each time the harness is made: nothing that a run paid for would be found again"

    def _selected(self, harness: Harness, instances: list[Instance]) -> Iterator[str]:
        selected = list(harness.instances(self._source))
        if wrong := [problem for one in selected if (problem := unsound_instance(one))]:
            yield wrong[0] + (f" (and {len(wrong) - 1} more like it)" if len(wrong) > 1 else "")
            return
        instances += selected
        if list(harness.instances(self._source)) != instances:
            yield "`instances` selects others, or in another order, when it is asked again"
        ids = [instance.id for instance in instances]
        for name in sorted({name for name in ids if ids.count(name) > 1}):
            yield f"two instances have the id {name!r}"
        for instance in instances:
            if instance.benchmark != harness.name:
                yield f"instance {instance.id} is of the benchmark {instance.benchmark!r}, not {harness.name!r}"
            if pickle.loads(pickle.dumps(instance)) != instance:  # noqa: S301 - our own bytes
                yield f"instance {instance.id} is another after a pickle carried it"

    # One instance

    def _episodes(self, harness: Harness, instance: Instance) -> Iterator[str | Breach]:
        before = canonical_json(instance.task)
        script = list(self._script(harness, instance))
        if not script:
            yield "there are no answers to play: pass `answers`, or give it a pseudo-model `reference`"
            return
        whole = played(harness, instance, script)
        wrong = list(unsound_parts(harness, instance, script, whole))
        if (
            not wrong
            and self._answers is None
            and isinstance(whole.end, Ruling)
            and whole.end.verdict is not Verdict.PASS
        ):
            wrong = [f"its own reference does not pass: {said(whole.end)}"]
        yield from wrong
        if wrong:
            return
        for title, check in (
            ("a second play of the same answers", self._replayed),
            ("a checkpoint", self._from_checkpoints),
            ("two episodes at once", self._apart),
            ("hostile answers", self._hostile),
            ("another process", self._elsewhere),
        ):
            yield from self._guarded(title, lambda one=check: one(harness, instance, script, whole))  # type: ignore[misc]
        if canonical_json(instance.task) != before:
            yield "an episode changed the instance's task"

    def _script(self, harness: Harness, instance: Instance) -> Iterator[Response]:
        if self._answers is not None:
            for answer in self._answers(instance):
                yield Response(answer) if isinstance(answer, str) else answer
            return
        with opened(harness, instance) as episode:
            for _ in range(LONGEST):
                answer_ = answered(harness, "reference", instance, episode.prefix(), FIRST)
                if answer_ is None:
                    return
                yield answer_
                if not episode.advance(answer_):
                    return

    def _replayed(self, harness: Harness, instance: Instance, script: list[Response], whole: Play) -> Iterator[str]:
        again = played(harness, instance, script)
        for number, (one, other) in enumerate(zip(whole.prefixes, again.prefixes, strict=True), 1):
            if one.canonical != other.canonical:
                mask = "its mask does not cover it" if harness.mask else "and the harness has no mask"
                yield f"played twice, step {number} shows other text, {mask}: {where_different(one, other)}"
                return
        if different := whole.difference(again):
            yield f"played twice with the same answers, {different}"

    def _from_checkpoints(
        self, harness: Harness, instance: Instance, script: list[Response], whole: Play
    ) -> Iterator[str]:
        taken: list[tuple[int, Checkpoint]] = []
        with opened(harness, instance) as episode:
            seen = []
            for number, response in enumerate(script, 1):
                if (checkpoint := episode.checkpoint()) is not None:
                    taken.append((number - 1, checkpoint))
                seen.append(after(episode, response))
            going_on = Play(whole.first, tuple(seen), end_of(episode))
        if different := whole.difference(going_on):
            yield f"once a checkpoint was taken the episode goes on otherwise: {different}"
        for done, checkpoint in taken:
            if different := continued(harness, instance, checkpoint, script, whole, done):
                yield f"from {_checkpoint_after(done)} it does not go on as it did before: {different}"
                return
        for done, _ in taken:
            if different := self._once_used(harness, instance, script, whole, done):
                yield f"{_checkpoint_after(done)} is changed by use: {different}"
                return

    def _once_used(self, harness: Harness, instance: Instance, script: list[Response], whole: Play, done: int) -> str:
        """How it goes on from a checkpoint that was used for other answers, as trials use it; empty: as before."""
        others = other_answers(script[done])
        for name in self._models:
            answer = answered(harness, name, instance, whole.prefixes[done], FIRST)
            others += [answer] if answer is not None else []
        with opened(harness, instance) as episode:
            for response in script[:done]:
                episode.advance(response)
            checkpoint = episode.checkpoint()
            _try(episode, others[-1])
        for other in [*others, script[done]]:
            with opened(harness, instance, checkpoint) as episode:
                _try(episode, other)
        return continued(harness, instance, checkpoint, script, whole, done)

    def _apart(self, harness: Harness, instance: Instance, script: list[Response], whole: Play) -> Iterator[str]:
        """An episode beside others, one for each that is given something else at one of its steps."""
        for done, response in enumerate(script):
            for other in other_answers(response):
                with opened(harness, instance) as one, opened(harness, instance) as beside:
                    first, seen = one.prefix(), []
                    for number, right in enumerate(script):
                        if number <= done:
                            _try(beside, other if number == done else right)
                        seen.append(after(one, right))
                    going = Play(first, tuple(seen), end_of(one))
                if different := whole.difference(going):
                    yield f"beside another episode that is given something else it goes otherwise: {different}"
                    return

    def _hostile(self, harness: Harness, instance: Instance, script: list[Response], whole: Play) -> Iterator[Breach]:
        """What is wrong with it under hostile answers; what several of them bring out is said once."""
        found: dict[Breach, list[str]] = {}
        for done, right in enumerate(script):
            hostile = hostile_answers(whole.prefixes[done]) if done in (0, len(script) - 1) else ()
            for what, response in (*hostile, *broken_answers(right)):
                if no_answer(response) is None and (wrong := withstood(harness, instance, script[:done], response)):
                    found.setdefault(wrong, []).append(f"{what} at step {done + 1}")
        for wrong, places in found.items():
            others = f" (and {len(places) - 1} more such answers)" if len(places) > 1 else ""
            yield Breach(f"{places[0]}: {wrong}{others}", wrong.place)

    def _elsewhere(self, harness: Harness, instance: Instance, script: list[Response], whole: Play) -> Iterator[str]:
        if is_named(self._class):
            told = told_in_a_fresh_interpreter(self._class, self._options, self._folder / "kept", instance, script)
            here = told_by(harness, whole)
            yield from (f"in a fresh interpreter {part} is another" for part in here if told[part] != here[part])


def _checkpoint_after(done: int) -> str:
    return f"the checkpoint after step {done}" if done else "the checkpoint before step 1"


def _try(episode: Episode, response: Response) -> None:
    """Give an episode an answer, whatever it makes of it: that it withstands each is looked at by itself."""
    with suppress(Exception):
        after(episode, response)
