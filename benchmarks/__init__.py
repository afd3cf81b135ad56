"""Figures, measured: each module prints one JSON line per case on standard output, and progress on standard error."""
