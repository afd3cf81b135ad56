"""Step-level tier labels for LLM routers, proved by executing mixed-model trajectories."""
