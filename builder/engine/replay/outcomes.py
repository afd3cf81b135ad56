"""What an execution came to, whatever happens in it: rulings as outcomes, faults of the apparatus as technical ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from stepdown.builder.common.faults import place_of, said, whole_traceback
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.digests import masked
from stepdown.builder.engine.calls import Calls
from stepdown.builder.errors import Lost, StepdownError, Technical
from stepdown.builder.records import Outcome, OutcomeState, Response, Ruling, Step, Stop, Verdict, outcome_state
from stepdown.harnesses.base import Harness

_EXECUTIONS = 5
"""How often a trial is executed whose environment is lost each time. The waits between let a daemon restart."""

_LONGEST_REASON = 300
"""Characters of the reason that names a harness's own error."""


def outcome_of(
    ruling: Ruling, steps: Sequence[Step], cut_off: bool = False, state: OutcomeState | None = None
) -> Outcome:
    """What an execution came to, without keys: a grader's words are anybody's."""
    reason = SECRETS.removed(ruling.reason) if ruling.reason else ""
    grading = masked(ruling.grading, SECRETS.removed) if ruling.grading is not None else None
    return Outcome(ruling.verdict, tuple(steps), reason, grading, cut_off, state)


def no_answer(response: Response) -> Ruling | None:
    """The ruling on a response with which no episode can go on, whatever the workload; None for an answer."""
    if response.stop is Stop.REFUSED:
        return Ruling(Verdict.REFUSED, "the model refused")
    if response.stop is Stop.OVERFLOW:
        return Ruling(Verdict.FAIL, "the prefix does not fit the model's context")
    if not response.content.strip() and not response.tool_calls:
        # Also for later steps' sake: a provider that rejects empty messages would look like one that is down.
        return Ruling(Verdict.FAIL, "an empty answer")
    return None


def execute_to_outcome(execute: Callable[[], Outcome], harness: Harness, calls: Calls) -> Outcome:
    """Execute a trajectory: the outcome is technical where the apparatus broke. What stops the run is raised.

    Where its environment is lost the trial is executed again from its checkpoint. No call is paid for twice, since
    the answers so far are in the cache. `calls` keep the errors that come before the outcome.
    """
    outcome = _execute_guarded(execute, harness, calls)
    if outcome.state is None and harness.tells_states:  # nothing was left of it but the verdict
        return replace(outcome, state=outcome_state(outcome.verdict))
    return outcome


def _execute_guarded(execute: Callable[[], Outcome], harness: Harness, calls: Calls) -> Outcome:
    try:
        return _retry_where_lost(execute, calls)
    except Technical as error:
        calls.note_failed([SECRETS.hidden(attempt) for attempt in error.attempts])
        return Outcome(Verdict.TECHNICAL, reason=SECRETS.hidden(error.reason))
    except StepdownError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may call sys.exit, or be cancelled: the run is not
        # A harness is anybody's code and reads hostile data: its faults must not end the work on other instances.
        # The reason is evidence and names no folder of this machine; the traceback goes to the ledger only.
        calls.note_failed([whole_traceback(error)])
        place = place_of(error, type(harness).__module__)
        broken = f"the harness broke: {f'{place}: ' if place else ''}{said(error)}"
        return Outcome(Verdict.TECHNICAL, reason=broken[:_LONGEST_REASON])


def _retry_where_lost(execute: Callable[[], Outcome], calls: Calls) -> Outcome:
    try:
        return execute()
    except Lost as error:
        return _execute_again(execute, error, calls)


def _execute_again(execute: Callable[[], Outcome], first: Lost, calls: Calls) -> Outcome:
    """Execute a trajectory until its environment is not lost, after the first time that it was."""
    lost: list[str] = []
    before = [first]

    def attempt() -> Outcome:
        if before:
            raise before.pop()
        return execute()

    retrying = Retrying(
        retry=retry_if_exception_type(Lost),
        stop=stop_after_attempt(_EXECUTIONS),
        wait=wait_exponential(max=8),
        before_sleep=lambda state: lost.append(SECRETS.hidden(str(state.outcome.exception())) if state.outcome else ""),
        reraise=True,
    )
    try:
        return retrying(attempt)
    finally:
        calls.note_failed(lost)
