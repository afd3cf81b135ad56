"""mini-swe-agent's own agent, driven one answer at a time.

Its loop, its parsers and its templates are upstream's; only where it would call a model it takes the answer it is
handed, and where it would run a command it runs it in our sandbox. Import `mini.load()` first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from minisweagent.agents.default import DefaultAgent
from minisweagent.exceptions import FormatError, InterruptAgentFlow, Submitted
from minisweagent.models.utils.actions_toolcall import (
    BASH_TOOL,
    format_toolcall_observation_messages,
    parse_toolcall_actions,
)

from stepdown.builder.records import Message, Response, Stop
from stepdown.harnesses.swebench.mini import AgentConfig
from stepdown.harnesses.swebench.output import SUBMITS
from stepdown.harnesses.swebench.sandbox import Broken, Sandbox

TOOLS = (BASH_TOOL,)
"""The tools of a SWE-bench agent."""
MOST_COMMANDS = 32
"""Commands of one answer. Upstream knows no bound; with its time limit a hundred of them could take hours."""

_EXIT = "exit"


@dataclass(frozen=True, slots=True)
class AgentState:
    """All that the agent's next turn depends on, its container aside."""

    messages: tuple[Message, ...]
    n_calls: int
    cost: float
    n_consecutive_format_errors: int
    extra_template_vars: Mapping[str, Any]
    elapsed: float


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What became of an answer."""

    answered: bool
    """Whether it held actions. If not, the agent drops it and says what was wrong with it."""
    follow: list[Message]
    """The messages that follow the answer, the exit left out."""


class _Handed:
    """Stands where the agent expects a model: hands over one answer."""

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        self.answer: tuple[Message, Response] | None = None

    def query(self, messages: list[Message], **_: Any) -> Message:
        """The answer as upstream's model would return it. Raises FormatError, by upstream's parser."""
        assert self.answer is not None, "a turn without an answer"
        (message, response), self.answer = self.answer, None
        calls = message.get("tool_calls", [])
        template = self.config.format_error_template
        reason = {"finish_reason": "length" if response.stop is Stop.LENGTH else "stop"}
        if len(calls) > MOST_COMMANDS:
            calls = [{"id": "", "function": {"name": f"{len(calls)} calls at once", "arguments": '{"command": ""}'}}]
        actions = parse_toolcall_actions(
            [SimpleNamespace(id=call["id"], function=SimpleNamespace(**call["function"])) for call in calls],
            format_error_template=template,
            template_kwargs=reason,
        )
        return {**message, "extra": {"actions": actions, "cost": 0.0, "timestamp": time.time()}}

    def format_message(self, **fields: Any) -> Message:
        return fields

    def format_observation_messages(
        self, message: Message, outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[Message]:
        return list(
            format_toolcall_observation_messages(
                actions=message["extra"]["actions"],
                outputs=outputs,
                observation_template=self.config.observation_template,
                template_vars=template_vars,
            )
        )

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {}


class _Environment:
    """Stands where the agent expects its environment: runs commands in the sandbox."""

    def __init__(self, sandbox: Sandbox, config: AgentConfig, shown: Callable[[str], str]) -> None:
        self.config, self._shown = config, shown
        self.submission: bytes | None = None
        self.broken: str | None = None
        self._sandbox = sandbox

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """Run a command. Raises Submitted where its output submits, InterruptAgentFlow where no other will ever run."""
        command = action["command"]
        if not isinstance(command, str):
            return _failed(f"a command is text, not {type(command).__name__}")
        try:
            ran = self._sandbox.run(command, self.config.command_seconds)
        except Broken as broken:
            self.broken = broken.reason
            raise InterruptAgentFlow(_exit("EnvironmentBroken")) from None
        first, _, rest = ran.output.lstrip().partition(b"\n")
        if first.strip() == SUBMITS and ran.returncode == 0:
            # As bytes: a patch of a file in another encoding, or with other line ends, stays what it is.
            self.submission = rest
            raise Submitted(_exit("Submitted"))
        text = ran.output.decode(errors="replace").replace("\0", "\ufffd")
        return {**_failed(ran.exception), "output": self._shown(text), "returncode": ran.returncode}

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {}


class StepwiseAgent(DefaultAgent):  # type: ignore[misc]
    """Upstream's agent whose loop is turned from outside: `start`, then `turn` until `halted`."""

    messages: list[Message]
    extra_template_vars: dict[str, Any]
    n_calls: int
    n_consecutive_format_errors: int

    def __init__(
        self, sandbox: Sandbox, config: AgentConfig, step_limit: int, shown: Callable[[str], str] = str
    ) -> None:
        """`step_limit` takes the place of upstream's; its limit of cost is off, since verdicts know no prices. `shown`
        gives what the agent sees of a command's output."""
        settings = {**config.agent, "step_limit": step_limit, "cost_limit": 0.0, "wall_time_limit_seconds": 0}
        self.handed, self.environment = _Handed(config), _Environment(sandbox, config, shown)
        super().__init__(self.handed, self.environment, **settings)

    def start(self, task: str) -> list[Message]:
        """The two messages that a run begins with."""
        self.extra_template_vars |= {"task": task}
        self.messages = []
        return list(
            self.add_messages(
                self.model.format_message(role="system", content=self._render_template(self.config.system_template)),
                self.model.format_message(role="user", content=self._render_template(self.config.instance_template)),
            )
        )

    def turn(self, message: Message, response: Response) -> AgentTurn:
        """One turn of upstream's `run` on an answer, `message` being the answer as a message."""
        before = len(self.messages)
        self.handed.answer = (message, response)
        try:
            self.step()
            self.n_consecutive_format_errors = 0
        except FormatError as error:
            self.n_consecutive_format_errors += 1
            self.add_messages(*error.messages)
            if 0 < self.config.max_consecutive_format_errors <= self.n_consecutive_format_errors:
                self.add_messages(_exit("RepeatedFormatError"))
        except InterruptAgentFlow as interrupt:
            self.add_messages(*interrupt.messages)
        if not self.halted and 0 < self.config.step_limit <= self.n_calls:
            # Upstream finds out at the next turn, with an answer in hand that would have been paid for.
            self.add_messages(_exit("LimitsExceeded"))
        added = self.messages[before:]
        answered = added[0]["role"] == "assistant"
        return AgentTurn(answered, [each for each in added[answered:] if each["role"] != _EXIT])

    @property
    def halted(self) -> str:
        """Upstream's exit status; empty while the agent goes on."""
        last: Message = self.messages[-1]
        return str(last["extra"]["exit_status"]) if last["role"] == _EXIT else ""

    def state(self) -> AgentState:
        """The state as it stands."""
        return AgentState(
            messages=tuple(self.messages),
            n_calls=self.n_calls,
            cost=self.cost,
            n_consecutive_format_errors=self.n_consecutive_format_errors,
            extra_template_vars=dict(self.extra_template_vars),
            elapsed=time.time() - self._start_time,
        )

    def go_on_from(self, state: AgentState) -> None:
        """Take over a state."""
        self.messages = list(state.messages)
        self.n_calls, self.cost = state.n_calls, state.cost
        self.n_consecutive_format_errors = state.n_consecutive_format_errors
        self.extra_template_vars = dict(state.extra_template_vars)
        self._start_time = time.time() - state.elapsed


def _exit(status: str) -> Message:
    return {"role": _EXIT, "content": status, "extra": {"exit_status": status, "submission": ""}}


def _failed(why: str) -> dict[str, Any]:
    """An output of nothing, for that reason, as upstream words it."""
    exception = f"An error occurred while executing the command: {why}" if why else ""
    return {"output": "", "returncode": -1, "exception_info": exception}
