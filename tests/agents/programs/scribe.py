"""An agent that does what it is asked with one tool, and ends with an answer that makes no call: `scribe.py TASK`."""

import os
import sys
from typing import Any

from clerk import act, ask  # type: ignore[import-not-found]


def main() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"You write files in {os.getcwd()}."}]
    messages.append({"role": "user", "content": sys.argv[1]})
    while messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls"):
        answer = ask(messages)
        messages.append(answer)
        messages += act(answer)


if __name__ == "__main__":
    main()
