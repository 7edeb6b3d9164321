"""A content server for a test, and a cable to it that can be cut."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import unittest
from pathlib import Path
from types import TracebackType
from typing import List, Optional, Type

CHECKOUT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("CONTENT_SERVER", "")
PATIENCE = 30.0
"""Longest wait of a test, in seconds."""

needs_server = unittest.skipUnless(
    PROGRAM, "CONTENT_SERVER does not say where the program lanecast is"
)


class Server:
    """`lanecast serve` on a free port of loopback."""

    def __init__(self, *options: str, listen: str = "127.0.0.1:0") -> None:
        command = [PROGRAM, "serve", "--listen", listen, *options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.at = line.split()[-1] if "listening on" in line else ""
        if not self.at:
            self.stop()
            raise AssertionError(f"the server did not start: {line!r}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()


class Cable:
    """Carries bytes to a server, and breaks each connection after some number of them."""

    def __init__(self, server: str, lengths: List[int]) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._lengths = lengths
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._links: List[socket.socket] = []
        self._lock = threading.Lock()
        self._has_ended = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def is_used_up(self) -> bool:
        """Whether it has stopped breaking connections."""
        with self._lock:
            return not self._lengths

    def cut(self) -> None:
        """Breaks the current connections."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            _shut(link)

    def close(self) -> None:
        self._has_ended = True
        _shut(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while not self._has_ended:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._server, PATIENCE)
                far.settimeout(None)
            except OSError:
                return
            with self._lock:
                self._links += [near, far]
                budget = [self._lengths.pop() if self._lengths else 1 << 60]
            for source, target in ((near, far), (far, near)):
                thread = threading.Thread(
                    target=self._carry, args=(source, target, budget), daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _carry(self, source: socket.socket, target: socket.socket, budget: List[int]) -> None:
        try:
            while True:
                data = source.recv(4_096)
                with self._lock:
                    data, is_all = data[: budget[0]], len(data) < budget[0]
                    budget[0] -= len(data)
                target.sendall(data)
                if not data or not is_all:
                    break
        except OSError:
            pass
        _shut(source)
        _shut(target)


def _shut(link: socket.socket) -> None:
    try:
        link.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    link.close()
