"""SWE-bench: mini-swe-agent's trajectories in containers without network, graded by the official grader.

`limits` and `labels` are what every container of ours has; `sandbox`, `agent`, `episode` and `snapshots` play
trajectories, `grading` judges the patch they submit, `harness` puts both behind the contract. `instances` and
`trajectories` read what others wrote.
"""
