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
    return write_json_array(map(_task, steps), out)


def _task(step: OutgoingStep) -> dict[str, Any]:
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
    """Read the answers of an export in Label Studio's own JSON, one for every annotation that was not cancelled."""
    for number, task in enumerate(read_json_array(path), 1):
        data = task.get("data") if isinstance(task, dict) else None
        annotations = task.get("annotations", []) if isinstance(task, dict) else None
        if not isinstance(data, dict) or not isinstance(annotations, list):
            yield IncomingAnswer(None, number, problem="no task with `data` and `annotations`")
            continue
        kept = [one for one in annotations if not (isinstance(one, dict) and one.get("was_cancelled"))]
        for annotation in kept:
            try:
                verdict, notes = _verdict_and_notes(annotation)
            except (KeyError, TypeError, AttributeError, IndexError):
                yield IncomingAnswer(None, number, problem="an annotation is not as Label Studio writes one")
            else:
                yield IncomingAnswer(
                    None,
                    number,
                    data.get("id"),
                    data.get("digest"),
                    data.get("reviewer"),
                    verdict,
                    notes,
                    account=_annotator(annotation),
                )


def _annotator(annotation: Mapping[str, Any]) -> str:
    """Who made an annotation, where the tool says so."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    return "" if by is None else str(by)


def _verdict_and_notes(annotation: Mapping[str, Any]) -> tuple[Any, str]:
    verdict: Any = None
    notes: list[str] = []
    for result in annotation["result"]:
        if result["from_name"] == "verdict":
            (verdict,) = result["value"]["choices"] or [None]
        elif result["from_name"] == "notes":
            text = result["value"]["text"]
            notes += [text] if isinstance(text, str) else map(str, text)
    return verdict, "\n".join(notes)


FORMAT = ExchangeFormat(_write, _read, {".config.xml": CONFIG})
