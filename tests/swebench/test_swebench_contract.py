"""SWE-bench keeps to the contract of every harness. Its episodes are containers, so one of a single step is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepdown.testing import check_harness
from tests.swebench import repository
from tests.swebench.conftest import written
from tests.swebench.test_swebench_episode import Ungraded, bash

SOLVE = bash("echo x > patch.txt && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt")


@pytest.mark.docker
def test_it_keeps_to_the_contract(tmp_path: Path, image: str) -> None:
    source = {"file": str(written(tmp_path / "instances.jsonl", repository.instance(image)))}
    check_harness(Ungraded, source=source, options={"step_limit": 2}, answers=lambda _: [SOLVE], most=1)
