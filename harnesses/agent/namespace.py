"""An address in a container that has no network: its loopback is listened on, from outside.

A network namespace has sockets of its own, and a socket stays with the namespace that it was made in. So a thread of
this process goes into the container's for as long as it takes to make one. Nothing is asked of the image, and nothing
of the host can be reached. It takes root on the Linux machine whose kernel runs the container.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading

from stepdown.builder.errors import Lost, Technical

PORT = 8317
"""Where the address is, in each container."""
_CLONE_NEWNET = 0x40000000
NEEDED = (
    "to give a container without network an address, stepdown must run as root on the Linux machine that runs it "
    "(not Docker Desktop, not rootless); `sandbox: process` needs none of this"
)


def listening_in(pid: int) -> socket.socket:
    """A socket that listens on the loopback of a process's network namespace. Raises Technical, and Lost where the
    process is gone.
    """
    made: list[socket.socket | Exception] = []
    # A namespace is entered by a thread, which must do nothing else in its life.
    thread = threading.Thread(target=lambda: made.append(_made(pid)), name="agent-namespace")
    thread.start()
    thread.join()
    (result,) = made
    if isinstance(result, FileNotFoundError):
        raise Lost("the container is gone")
    if isinstance(result, Exception):
        raise Technical(f"no address in the container ({result}): {NEEDED}")
    return result


def _made(pid: int) -> socket.socket | Exception:
    sock = None
    try:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(namespace, _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        finally:
            os.close(namespace)
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.bind(("127.0.0.1", PORT))
        sock.listen(128)
        return sock
    except Exception as error:
        if sock is not None:
            sock.close()
        return error
