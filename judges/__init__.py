"""The hardened judge of free-text workloads: rubric, prompts and calibration against human ratings."""
