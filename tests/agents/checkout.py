"""A checkout in the form of pinchbench/skill with tasks of our own."""

from __future__ import annotations

from pathlib import Path

GRADER = """
def grade(transcript: list, workspace_path: str) -> dict:
    from pathlib import Path

    calls = [
        item
        for event in transcript
        if event.get("type") == "message" and event["message"]["role"] == "assistant"
        for item in event["message"]["content"]
        if item["type"] == "toolCall"
    ]
    pieces = sorted(Path(workspace_path).glob("piece-*.txt"))
    scores = {piece.name: float(piece.read_text().startswith("well made")) for piece in pieces}
    scores["called once a piece"] = [call["params"] for call in calls] == [call["arguments"] for call in calls] != []
    scores["a note that is no score"] = "by hand"
    return scores
"""
"""Scores the pieces, and looks for the calls that made them."""
RUBRIC = """
### Well made (Weight: 70%)

Each piece is well made by skill.

### Made by skill (Weight: 30%)

Made by skill.
"""


def page(name: str, prompt: str, head: str = "", grader: str = GRADER, rubric: str = "") -> str:
    """A task's page."""
    kind = "hybrid" if grader and rubric else "llm_judge" if rubric else "automated"
    parts = [
        f"---\nid: {name}\nname: A task\ncategory: making\ngrading_type: {kind}\ntimeout_seconds: 60\n{head}---\n",
        f"## Prompt\n\n{prompt}\n",
        "## Expected Behavior\n\nThe pieces are well made.\n",
        "## Grading Criteria\n\n- [ ] Each piece is well made\n",
        f"## Automated Checks\n\n```python\n{grader}\n```\n" if grader else "",
        f"## LLM Judge Rubric\n{rubric}" if rubric else "",
    ]
    return "\n".join(parts)


def checkout(folder: Path, **pages: str) -> Path:
    """A checkout with these pages and one file of assets."""
    for name, text in pages.items():
        file = folder / "tasks" / f"task_{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "assets").mkdir(exist_ok=True)
    (folder / "assets" / "guide.txt").write_text(
        "Pieces are well made by skill 0 where that is enough, else by skill 9.\n"
    )
    return folder
