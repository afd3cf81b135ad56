"""One run of an agent program: each of its requests is a step, its end is the halt, the grader's word the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from stepdown.builder.errors import Lost, Technical
from stepdown.builder.records import Message, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.agent.aliases import Aliases
from stepdown.harnesses.agent.exchange import Exchange, Next, PendingRequest
from stepdown.harnesses.agent.grading import (
    CommandGrader,
    Graded,
    PythonGrader,
    graded_by_command,
    graded_by_python,
    ruled,
)
from stepdown.harnesses.agent.judging import case_of
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.agent.program import Ended, Program, ProgramSandbox
from stepdown.harnesses.agent.reply import Reply
from stepdown.harnesses.agent.request import ChatRequest
from stepdown.harnesses.agent.side_calls import SideCalls
from stepdown.harnesses.agent.tasks import TaskLine
from stepdown.harnesses.agent.volatile import shapes_between
from stepdown.harnesses.base import Ask, Episode
from stepdown.judges.case import JudgeCase


class AgentEpisode(Episode):
    """A program at work on one task. Whoever made it ends it: see `AgentHarness.open`."""

    def __init__(
        self,
        task: TaskLine,
        folder: Path,
        sandbox: ProgramSandbox,
        exchange: Exchange,
        aliases: Aliases,
        limits: Limits,
        side_calls: SideCalls | None,
        start: Callable[[], Program],
    ) -> None:
        """`folder` is the one of the file of tasks; `start` starts the program."""
        self._task, self._folder, self._limits = task, folder, limits
        self._sandbox, self._exchange, self._aliases, self._side_calls = sandbox, exchange, aliases, side_calls
        self._ask: Ask | None = None
        self._expected: Prefix | None = None
        self._held: PendingRequest | None = None
        self._prefix: Prefix | None = None
        self._last: Response | None = None
        self._steps = self._calls = self._answers = self._side = 0
        self._is_over = False
        self._halted: Ruling | None = None
        self._ruling: Ruling | None = None
        self._program = start()

    # What the engine asks

    def answer_beside(self, ask: Ask) -> None:
        """Side calls are answered by this."""
        self._ask = ask

    def expect(self, prefix: Prefix) -> None:
        """Of requests that wait together, the one that was recorded here comes first."""
        self._expected = prefix

    def prefix(self) -> Prefix:
        """The request that waits for an answer, as messages and tools; after the end, the last one and its answer."""
        if self._held is None and not self._is_over:
            self._take()
        assert self._prefix is not None
        return self._prefix

    def advance(self, response: Response) -> bool:
        """Answer the request, and wait for the next one or for the program's end."""
        if self._is_over:
            return False
        held = self._held or self._take()
        assert self._prefix is not None
        self._steps += 1
        self._last, self._held = response, None
        self._reply(held, response)
        if self._wait():
            if self._steps < self._limits.steps:
                return True
            self._halt(f"it asked for more than {self._limits.steps} steps")
        self._is_over, self._prefix = True, self._prefix.respond(response)
        return False

    def case(self) -> JudgeCase | None:
        """What the judge is to decide, where the task has a grader that asks it and all others pass."""
        rule = next((grader.judge for grader in self._task.grader if not isinstance(grader, _BY_RULE)), None)
        if rule is None or self._graded().verdict is not Verdict.PASS:
            return None
        with self._sandbox.copied_out() as workspace:
            content = self._task.content(self._folder)
            return case_of(rule, self._task.prompt, content, workspace, self._last_words())

    def verdict(self) -> Ruling:
        """What the graders say of the workspace; incomplete where the program was stopped."""
        ruling = self._graded()
        if ruling.verdict is Verdict.PASS and not all(isinstance(grader, _BY_RULE) for grader in self._task.grader):
            return Ruling(Verdict.FAIL, "there is no answer to judge", ruling.grading)
        return ruling

    def close(self) -> None:
        """End the program."""
        self._program.stop()

    # Requests

    def _wait(self) -> bool:
        """Wait for a request that is a step, answering side calls meanwhile; False once the program has ended."""
        recorded = self._recorded if self._expected is not None else None
        try:
            while (coming := self._exchange.wait(self._limits.seconds, recorded)) is Next.SIDE:
                self._answer_side(self._exchange.take_side())
        except TimeoutError:
            self._halt(f"it neither asked nor ended within {self._limits.seconds:g} s")
            return False
        return coming is Next.STEP

    def _take(self) -> PendingRequest:
        """Take the next request. Raises Technical where the program ends without one: no answer led to that. Raises
        Lost where it ends while one waits.
        """
        held = None
        while held is None and self._wait():
            held = self._exchange.take(self._recorded if self._expected is not None else None)
        if held is None:
            raise Lost("the program ended while it asked") if self._steps else Technical(self._without_request())
        self._held, self._expected = held, None
        self._prefix = self._grown(self._aliases.request(held.request))
        return held

    def _recorded(self, request: ChatRequest) -> bool:
        """Whether a request is the one that was recorded here."""
        expected = self._expected
        if expected is None or len(request.messages) != len(expected.messages):
            return False
        asked = self._aliases.request(request)
        return shapes_between(expected, Prefix.start(asked.messages, asked.tools)) is not None

    def _grown(self, request: ChatRequest) -> Prefix:
        """The request's prefix; made of the last one where that is how it begins, since only what is new costs then."""
        before = self._prefix
        if before is None or list(before.messages) != list(request.messages[: len(before.messages)]):
            return Prefix.start(request.messages, request.tools)
        grown = before.extend(request.messages[len(before.messages) :])
        return grown if grown.tools == request.tools else grown.with_tools(request.tools)

    def _reply(self, held: PendingRequest, response: Response) -> None:
        self._answers += 1
        first = self._calls + 1
        self._calls += len(response.tool_calls)
        self._exchange.answer(held, Reply(self._aliases.response(response), self._answers, first))

    def _answer_side(self, held: PendingRequest) -> None:
        self._side += 1
        if self._side > self._limits.side_calls:
            self._halt(f"it made more than {self._limits.side_calls} side calls")
            return
        rule = self._side_calls
        assert rule is not None
        if rule.answer is not None:
            self._reply(held, Response(rule.answer))
            return
        if self._ask is None or rule.model is None:
            raise Technical("nobody is here to answer a side call")
        asked = self._aliases.request(held.request)
        self._reply(held, self._ask(rule.model, Prefix.start(asked.messages, asked.tools)))

    # The end

    def _halt(self, why: str) -> None:
        if self._halted is None:
            self._halted = Ruling(Verdict.INCOMPLETE, why)
        self._exchange.end()
        self._program.stop()

    def _without_request(self) -> str:
        """Why a program that asked for nothing is of no use."""
        if self._halted is not None:
            return f"the program made no request: {self._halted.reason}"
        refused = "".join(f"; refused: {problem}" for problem in self._exchange.refused)
        return self._aliases.inwards(f"the program ended without a request: {self._ended().told()}{refused}")

    def _ended(self) -> Ended:
        self._program.stop()
        return self._program.ended() or Ended(None, "stopped")

    def _graded(self) -> Ruling:
        """What the graders that need no judge say; asked once."""
        if self._ruling is None:
            self._ruling = self._halted or self._judge_of_end() or ruled(dict(self._by_rule()))
        return self._ruling

    def _judge_of_end(self) -> Ruling | None:
        """A program that took too much is incomplete, whatever it left behind."""
        self._exchange.end()
        ended = self._ended()
        over = ended.code is None and ended.why not in ("", "stopped")
        return Ruling(Verdict.INCOMPLETE, ended.why) if over else None

    def _by_rule(self) -> list[tuple[str, Graded]]:
        transcript = json.dumps(self._transcript(), ensure_ascii=False)
        graded: list[tuple[str, Graded]] = []
        for number, grader in enumerate(self._task.grader, 1):
            if isinstance(grader, CommandGrader):
                one = graded_by_command(grader, self._sandbox, self._folder, transcript)
            elif isinstance(grader, PythonGrader):
                one = graded_by_python(grader, self._sandbox, self._folder, transcript, self._limits)
            else:
                continue
            graded.append((f"{number}", one.model_copy(update={"reason": self._aliases.inwards(one.reason)})))
        return graded

    def _transcript(self) -> list[Message]:
        """The conversation as far as a router could see it, and the last answer."""
        return list(self._prefix.messages) if self._prefix is not None else []

    def _last_words(self) -> str:
        return self._last.content if self._last is not None else ""


_BY_RULE = (CommandGrader, PythonGrader)
