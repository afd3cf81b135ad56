"""The files for SLURM and KubeRay, as far as they can be tried without either."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepdown.builder.config.operation import OperationConfig
from tests.conftest import ROOT

FILES = ROOT / "configs" / "cluster"


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def ran(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The job script, with programs in SLURM's place that say what they were called with."""
    programs, environment = tmp_path / "programs", tmp_path / ".venv" / "bin"
    programs.mkdir()
    environment.mkdir(parents=True)
    executable(programs / "scontrol", "echo oak; seq 100000")  # more than a pipe holds, of nodes
    executable(programs / "srun", 'case "$*" in *hostname*) echo 10.0.0.1 fd00::1;; *) printf "%s\\n" "$@";; esac')
    (environment / "activate").write_text("")
    given = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "oak,ash,elm",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_CPUS_PER_TASK": "8",
    }
    command = ["bash", str(FILES / "slurm.sh"), *arguments]
    return subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60)


def test_the_job_starts_ray_on_every_node_and_builds_on_the_first(tmp_path: Path) -> None:
    done = ran(tmp_path, "a config.yaml", "runs/x")
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    assert words[:2] == ["--nodes=3", "--ntasks=3"]
    place = words.index("symmetric-run")
    assert words[place + 1 : place + 5] == ["--address", "10.0.0.1:24711", "--min-nodes", "3"]
    assert json.loads(words[words.index("--resources") + 1]) == {"docker": 1}
    assert words[words.index("--") + 1 :] == ["stepdown", "build", "a config.yaml", "--run", "runs/x"]


def test_the_job_says_what_it_wants(tmp_path: Path) -> None:
    done = ran(tmp_path, "run.yaml")
    assert done.returncode != 0
    assert "the folder of the run" in done.stderr


@pytest.mark.cluster
def test_ray_takes_every_option_that_the_job_gives_it(tmp_path: Path) -> None:
    from ray.scripts.scripts import start
    from ray.scripts.symmetric_run import symmetric_run

    done = ran(tmp_path, "run.yaml", "runs/x")
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    given = {word for word in words[words.index("symmetric-run") : words.index("--")] if word.startswith("--")}
    known = {option for command in (start, symmetric_run) for one in command.params for option in one.opts}
    assert given <= known


def manifest() -> dict[str, Any]:
    _, cluster = yaml.safe_load_all((FILES / "raycluster.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = cluster
    return found


def test_the_manifest_is_of_the_kind_that_kuberay_reads() -> None:
    cluster = manifest()
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    spec = cluster["spec"]
    (workers,) = spec["workerGroupSpecs"]
    assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"] == 9
    for group in (spec["headGroupSpec"], workers):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "Kubernetes wants texts"
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounted = {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]}
        assert mounted == volumes


def test_the_head_of_the_manifest_keeps_runs_and_works_on_none() -> None:
    head = manifest()["spec"]["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert head["serviceType"] == "ClusterIP", "Ray's ports are reached from within only"


def test_a_worker_states_docker_as_ray_is_told_of_it() -> None:
    (workers,) = manifest()["spec"]["workerGroupSpecs"]
    # KubeRay puts the text into a shell's command line.
    (stated,) = shlex.split(workers["rayStartParams"]["resources"])
    assert json.loads(stated) == {"docker": 1}


@pytest.mark.cluster
def test_the_manifest_wants_the_version_that_is_installed() -> None:
    assert manifest()["spec"]["rayVersion"] == version("ray")


def test_the_config_that_the_page_shows_is_read() -> None:
    text = (FILES / "slurm.sh").read_text(encoding="utf-8")
    shown = text.split("`operation: ", 1)[1].split("`", 1)[0]
    assert OperationConfig.model_validate(yaml.safe_load(shown)).workers == 40
