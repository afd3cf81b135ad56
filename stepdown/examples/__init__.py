"""Workloads to learn from, each a page of plain code that imports nothing of stepdown but its public names."""
