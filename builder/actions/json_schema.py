"""A JSON schema in place of native tools: placeholder."""

from builder.actions.tools import parsed, rendered

__all__ = ["parsed", "rendered"]
