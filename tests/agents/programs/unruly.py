"""An agent that behaves badly once it has its first answer, in the way that its first argument names."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Any


def ask(text: str, timeout: float = 60) -> Any:
    body = {"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def asleep(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*(command or ("sleep", "98765"))], start_new_session=True)


def orphans() -> None:
    """It leaves processes behind that have sessions of their own, and parents that are gone."""
    for _ in range(3):
        asleep("sh", "-c", "sleep 98765 & sleep 98765 &")


def forks() -> None:
    """It forks and forks."""
    while True:
        asleep()


def hangs() -> None:
    asleep()
    time.sleep(98765)


def floods() -> None:
    while True:
        sys.stdout.write("flood " * 10_000)


def fills() -> None:
    """It fills the disk."""
    with open("full", "wb") as file:
        while True:
            file.write(bytes(1 << 20))


def fills_with_many() -> None:
    number = 0
    while True:
        number += 1
        with open(f"full-{number}", "wb") as file:
            file.write(bytes(1 << 20))


def eats() -> None:
    """It takes all the memory there is."""
    eaten = []
    while True:
        eaten.append(bytearray(b"x" * (8 << 20)))


def ignores() -> None:
    """It asks the same again, whatever it is answered."""
    while True:
        ask("begin")


def talks_on_the_side() -> None:
    while True:
        ask("a title")


def closes_its_output() -> None:
    os.close(1)
    os.close(2)
    time.sleep(98765)


def crashes() -> None:
    os.abort()


def asks_as_it_ends() -> None:
    """Others of its threads still ask when it is over."""
    for number in range(5):
        threading.Thread(target=ask, args=(f"late {number}",), daemon=True).start()


def locks_its_files() -> None:
    os.makedirs("locked/deep")
    open("locked/deep/file", "w").close()
    os.chmod("locked/deep", 0)
    os.chmod("locked", 0)


def main() -> None:
    if sys.argv[1] != "asks_nothing":
        ask("begin")
        globals()[sys.argv[1]]()


if __name__ == "__main__":
    main()
