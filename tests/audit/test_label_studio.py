"""What is written for Label Studio is what its own SDK takes, in an environment of its own (`make labelstudio`).

The SDK weighs half a gigabyte and pins numpy, so neither the suite's environment nor CI has it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.audit.reviewing import above_lowest, only, review
from tests.conftest import LABEL_STUDIO, stepdown

CHECK = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
config, file = sys.argv[1:]
interface = LabelInterface(open(config).read())
interface.validate()  # raises where it is no config
tasks = json.load(open(file))
annotations = [annotation for task in tasks for annotation in task.get("annotations", [])]
print(json.dumps({
    # Of a task's annotations the SDK's own check is broken: they are checked one by one.
    "data": [bool(interface.validate_task({"data": task["data"]})) for task in tasks],
    "annotations": [bool(interface.validate_annotation(one)) for one in annotations],
}))
"""


def checked(config: Path, tasks: Path) -> dict[str, list[bool]]:
    python = LABEL_STUDIO / "bin" / "python"
    done = subprocess.run([python, "-c", CHECK, config, tasks], capture_output=True, text=True, check=True)
    found: dict[str, list[bool]] = json.loads(done.stdout)
    return found


@pytest.mark.labelstudio
def test_the_config_and_every_task_and_annotation_are_valid(sampled: Path, tmp_path: Path) -> None:
    target = above_lowest(sampled)[0]
    review(sampled, "ann", only("further-downgradeable", target), "why:\n<b>&")
    file = tmp_path / "tasks.json"
    assert stepdown("audit", "export", str(sampled), "-o", str(file), "--format", "label-studio").code == 0
    found = checked(tmp_path / "tasks.config.xml", file)
    count = len(above_lowest(sampled))
    assert found == {"data": [True] * count, "annotations": [True] * count}
    # And the check can fail.
    tasks: list[dict[str, Any]] = json.loads(file.read_text())
    del tasks[0]["data"]["messages"]
    tasks[1]["annotations"][0]["result"][0]["value"]["choices"] = ["loose"]
    tasks[2]["annotations"][0]["result"][1]["from_name"] = "nobody"
    file.write_text(json.dumps(tasks[:4]))
    wrong = checked(tmp_path / "tasks.config.xml", file)
    assert wrong == {"data": [False, True, True, True], "annotations": [True, False, False, True]}
