"""Label Studio: tasks with annotations, and the labelling config that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from stepdown.audit.exchange.json_arrays import read_json_array, write_json_array
from stepdown.audit.exchange.records import (
    ExchangeFormat,
    IncomingAnswer,
    OutgoingStep,
    lower_answers_text,
    message_text,
    question,
    tool_list,
)
from stepdown.audit.verdicts import AuditVerdict

CONFIG = f"""<View>
  <Header value="$question"/>
  <Paragraphs name="prefix" value="$messages" layout="dialogue" nameKey="role" textKey="text"/>
  <Header value="Tools"/>
  <Text name="tools" value="$tools"/>
  <Header value="The response that was locked"/>
  <Text name="response" value="$response"/>
  <Header value="What one tier lower answered"/>
  <Text name="lower" value="$lower"/>
  <Choices name="verdict" toName="prefix" choice="single" required="true" showInline="true">
{"".join(f'    <Choice value="{verdict.value}"/>{chr(10)}' for verdict in AuditVerdict)}  </Choices>
  <TextArea name="notes" toName="prefix" rows="3" maxSubmissions="1" placeholder="Notes"/>
</View>
"""


def _write(steps: Iterable[OutgoingStep], out: TextIO) -> int:
    return write_json_array(map(label_studio_task, steps), out)


def label_studio_task(step: OutgoingStep) -> dict[str, Any]:
    """A step as a task, with the annotation of an earlier answer."""
    case = step.case
    task: dict[str, Any] = {
        "data": {
            "id": case.id,
            "digest": case.prefix_digest,
            "reviewer": step.reviewer,
            "question": question(case),
            "target_tier": case.tier,
            "below": case.below or "",
            "step": f"{case.step_index} of {case.total_steps}",
            "messages": [{"role": message["role"], "text": message_text(message)} for message in case.messages],
            "tools": tool_list(case) or "none",
            "response": message_text(case.response),
            "lower": lower_answers_text(case.lower) or "nothing was tried one tier lower",
        }
    }
    if step.verdict is not None:
        result = [_result("verdict", "choices", {"choices": [step.verdict.value]})]
        if step.notes:
            result.append(_result("notes", "textarea", {"text": [step.notes]}))
        task["annotations"] = [{"result": result}]
    return task


def _result(control: str, kind: str, value: dict[str, list[str]]) -> dict[str, Any]:
    return {"id": control, "from_name": control, "to_name": "prefix", "type": kind, "value": value}


def _read(path: Path) -> Iterator[IncomingAnswer]:
    return read_tasks(read_json_array(path))


def read_tasks(tasks: Iterable[Any]) -> Iterator[IncomingAnswer]:
    """The answers of tasks in Label Studio's own JSON, one for every annotation; what was not submitted, as a cancelled
    annotation, is told as that.
    """
    for number, task in enumerate(tasks, 1):
        data = task.get("data") if isinstance(task, dict) else None
        annotations = task.get("annotations", []) if isinstance(task, dict) else None
        if not isinstance(data, dict) or not isinstance(annotations, list):
            yield IncomingAnswer(None, number, problem="no task with `data` and `annotations`")
            continue
        step = data.get("id"), data.get("digest"), data.get("reviewer")
        for annotation in annotations:
            if isinstance(annotation, dict) and annotation.get("was_cancelled"):
                account = _annotator(annotation)
                yield IncomingAnswer(None, number, *step, account=account, unsubmitted="cancelled")
                continue
            try:
                verdict, notes = _verdict_and_notes(annotation)
            except (KeyError, TypeError, AttributeError, IndexError):
                yield IncomingAnswer(None, number, problem="an annotation is not as Label Studio writes one")
            except ValueError as error:
                yield IncomingAnswer(None, number, problem=f"verdict: {error}")
            else:
                yield IncomingAnswer(None, number, *step, verdict, notes, account=_annotator(annotation))
        drafts = task.get("drafts")
        for draft in drafts if isinstance(drafts, list) else ():
            if isinstance(draft, dict):
                yield IncomingAnswer(None, number, *step, account=str(draft.get("user") or ""), unsubmitted="draft")


def _annotator(annotation: Mapping[str, Any]) -> str:
    """Who made an annotation, where the tool says so."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    return "" if by is None else str(by)


def _verdict_and_notes(annotation: Mapping[str, Any]) -> tuple[Any, str]:
    """What an annotation says. Raises ValueError where it has not one verdict, and others where it is none."""
    verdict: Any = None
    notes: list[str] = []
    for result in annotation["result"]:
        if result["from_name"] == "verdict":
            chosen = result["value"]["choices"]
            if not isinstance(chosen, list):
                raise ValueError("`choices` is not a list, as Label Studio writes it")
            if len(chosen) > 1:
                raise ValueError(f"{len(chosen)} choices in one annotation: exactly one answers the question")
            if verdict is not None and chosen:
                raise ValueError("two verdicts in one annotation")
            verdict = chosen[0] if chosen else verdict
        elif result["from_name"] == "notes":
            text = result["value"]["text"]
            notes += [text] if isinstance(text, str) else map(str, text)
    return verdict, "\n".join(notes)


FORMAT = ExchangeFormat(_write, _read, {".config.xml": CONFIG})
