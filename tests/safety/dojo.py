"""Episodes of AgentDojo played by scripts, and models behind a provider that have its pseudo-models' abilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepdown.builder.records import Instance, OutcomeState, Prefix, Response, Ruling, Signs, Step, outcome_state
from stepdown.harnesses.agentdojo import AgentDojo
from stepdown.harnesses.checked import opened
from tests.provider import Ability, Answer, Request

Script = Callable[[Prefix], Response]


@dataclass(frozen=True)
class Played:
    """An episode from its start to its end."""

    steps: Sequence[Step]
    ruling: Ruling
    signs: Signs

    @property
    def state(self) -> OutcomeState:
        return outcome_state(self.ruling.verdict, self.signs)


def played(harness: AgentDojo, instance: Instance, script: str | Script) -> Played:
    """Play an instance by a pseudo-model's name or by a script."""

    def answer(prefix: Prefix) -> Response:
        if not isinstance(script, str):
            return script(prefix)
        found = harness.answer(script, instance, prefix)
        assert found is not None
        return found

    steps, going = [], True
    with opened(harness, instance) as episode:
        while going:
            prefix = episode.prefix()
            steps.append(Step(prefix, answer(prefix), ""))
            going = episode.advance(steps[-1].response)
        return Played(steps, episode.verdict(), episode.signs())


def able_as(name: str, harness: AgentDojo, instances: Sequence[Instance]) -> Ability:
    """A model with the ability of a pseudo-model: it finds its task by what the user asks."""
    by_task = {played_prompt(harness, one): one for one in instances}

    def ability(request: Request) -> Answer:
        messages = request["messages"]
        instance = by_task[messages[1]["content"]]
        answer = harness.answer(name, instance, Prefix.start(messages))
        assert answer is not None
        return Answer(answer.content, tuple((call.name, call.arguments) for call in answer.tool_calls))

    return ability


def played_prompt(harness: AgentDojo, instance: Instance) -> str:
    with opened(harness, instance) as episode:
        return str(episode.prefix().messages[1]["content"])
