"""An agent that nobody wrote for stepdown: it works through the orders in its workspace with one tool, order by order.

    python clerk.py TASK [HABIT...]

It has no habit unless one is named: see `HABITS` for those of its own, the rest are of the way in which it asks.
"""

import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

TOOL = {
    "type": "function",
    "function": {
        "name": "write",
        "description": "Writes a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    },
}


def ask(messages: list[Any], tools: Sequence[Any] = (TOOL,), timeout: float = 60, retries: int = 0) -> Any:
    body = {"model": os.environ["OPENAI_MODEL"], "messages": messages}
    body |= {"tools": list(tools)} if tools else {}
    for count in range(retries + 1):
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)["choices"][0]["message"]
        except OSError:
            if count == retries:
                raise
    return None


def act(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the tools say to an answer."""
    for call in message.get("tool_calls") or []:
        arguments = json.loads(call["function"]["arguments"])
        Path(arguments["path"]).write_text(arguments["text"])
        yield {"role": "tool", "tool_call_id": call["id"], "content": "written: " + arguments["text"]}


def shuffled() -> str:
    names = [f"file-{number}.txt" for number in range(6)]
    random.shuffle(names)
    return "\n".join(names)


HABITS: dict[str, Callable[[], str]] = {
    "time": lambda: time.strftime("It is %Y-%m-%d %H:%M:%S.") + f" {time.time()} s",
    "uuid": lambda: f"request {uuid.uuid4()}",
    "temporary": lambda: f"scratch in {tempfile.mkdtemp()}",
    "pid": lambda: f"pid {os.getpid()}",
    "port": lambda: f"listening on port {random.randint(20000, 60000)}",
    "shuffled": shuffled,
    "dice": lambda: f"the dice fell on {random.randint(1, 10**6)} today",
}
"""What it tells its model with every order."""


def fill_at_once(messages: list[Any], orders: list[str]) -> None:
    """Every order in a conversation of its own, all of them at the same time."""

    def fill(number: int) -> None:
        time.sleep(random.random() / 50)
        answer = ask([*messages, {"role": "user", "content": f"order {number}: {orders[number]}"}])
        list(act(answer))

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(len(orders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    habits = sys.argv[2:]
    orders = Path("orders.txt").read_text().splitlines()
    messages = [{"role": "system", "content": "You fill orders in " + os.getcwd() + "."}]
    messages.append({"role": "user", "content": sys.argv[1]})
    if "titles" in habits:
        ask([{"role": "user", "content": "A title for: " + sys.argv[1]}], tools=())
    if "at once" in habits:
        fill_at_once(messages, orders)
        return
    for number, order in enumerate(orders):
        told = [HABITS[habit]() for habit in habits if habit in HABITS]
        messages.append({"role": "user", "content": "\n".join([f"order {number}: {order}", *told])})
        answer = ask(messages, timeout=0.2, retries=400) if "impatient" in habits else ask(messages)
        messages.append(answer)
        messages += act(answer)
    print("all orders are filled")


if __name__ == "__main__":
    main()
