"""A prefix as plain chat, for models that get no native tools."""

from __future__ import annotations

from collections.abc import Iterable

from stepdown.builder.records import Message, Prefix


def chat(prefix: Prefix, guide: str, turns: Iterable[tuple[str, str]]) -> list[Message]:
    """One system message, with the guide at its end, and the turns after it as (role, text).

    Neighbours of one role are merged, since some chat templates insist that roles alternate.
    """
    system = [message_text(message) for message in prefix.messages if message["role"] in {"system", "developer"}]
    system += [guide] if guide else []
    out: list[Message] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for role, text in turns:
        if out and out[-1]["role"] == role:
            out[-1]["content"] += f"\n{text}"
        else:
            out.append({"role": role, "content": text})
    return out


def message_text(message: Message) -> str:
    """What a message says, its parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content) if content is not None else ""
