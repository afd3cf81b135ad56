"""A small agent, which knows nothing of stepdown: three tools, and a loop until the model answers without one.

python agent.py TASK, with OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL in the environment.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

SYSTEM = "You work in a folder of files. Do the task with the tools. When it is done, say so in a few words."


def list_files() -> str:
    """Names all files of the folder."""
    return "\n".join(sorted(str(path) for path in Path().rglob("*") if path.is_file()))


def read_file(path: str) -> str:
    """Reads a file."""
    return Path(path).read_text()


def write_file(path: str, text: str) -> str:
    """Writes a whole file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return f"{len(text)} characters written"


TOOLS: dict[str, Any] = {"list_files": list_files, "read_file": read_file, "write_file": write_file}
PARAMETERS: dict[str, list[str]] = {"list_files": [], "read_file": ["path"], "write_file": ["path", "text"]}


def described(name: str) -> dict[str, Any]:
    """A tool as the API takes it."""
    properties = {each: {"type": "string"} for each in PARAMETERS[name]}
    parameters = {"type": "object", "properties": properties, "required": PARAMETERS[name]}
    return {
        "type": "function",
        "function": {"name": name, "description": TOOLS[name].__doc__, "parameters": parameters},
    }


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's next message."""
    body = {"model": os.environ["OPENAI_MODEL"], "messages": messages, "tools": [described(name) for name in TOOLS]}
    request = urllib.request.Request(  # noqa: S310 - the address that it was told
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def used(call: dict[str, Any]) -> str:
    """What a tool says to a call."""
    try:
        return str(TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"])))
    except (KeyError, TypeError, ValueError, OSError) as error:
        return f"error: {error}"


def main() -> None:
    """Work at a task."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": sys.argv[1]}]
    for _ in range(12):
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        for call in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": used(call)})


if __name__ == "__main__":
    main()
