"""Beginnings and ends of both clients: addresses that do not answer, closing, and long waits."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
import time
import unittest
from typing import Any, Awaitable, Callable, Iterator, List, Optional, Tuple
from unittest import mock

from test_blocking import logon_ack
from testbed import PATIENCE, Server, needs_server

from lanecast import Client, ConnectError, LanecastError, Settings, aio, wire

MESSAGES = 16
MESSAGE = bytes(16 << 10)
SERVER_BYTES = 4 << 10
"""What the server's system receives while the server reads nothing: a part of the messages."""


class SlowServer:
    """Accepts one connection and its logon, and reads on once it is told."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SERVER_BYTES)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.place: Tuple[str, int] = self._listener.getsockname()
        self.at = "%s:%d" % self.place
        self._link: Optional[socket.socket] = None
        self.reads = threading.Event()
        self.messages = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Sends heartbeats, which the client has not read when it closes."""
        assert self._link is not None
        self._link.sendall(bytes(4 * 100))

    def wait(self) -> int:
        """The number of messages that came before the end of the connection."""
        self._thread.join(PATIENCE)
        self._listener.close()
        return self.messages

    def _serve(self) -> None:
        self._link, _ = self._listener.accept()
        link = self._link
        frames = wire.Frames()
        with link, contextlib.suppress(OSError):
            while not self._take(frames, link.recv(1 << 16)):
                pass
            link.sendall(logon_ack(wire.PROTOCOL_VERSION))
            self.reads.wait(PATIENCE)
            while True:
                data = link.recv(1 << 16)
                if not data:
                    return
                self._take(frames, data)

    def _take(self, frames: wire.Frames, data: bytes) -> bool:
        """Counts messages; returns whether a frame came."""
        frames.add(data)
        count = 0
        for payload in iter(frames.next, None):
            count += 1
            header, _ = wire.read_header(payload)
            self.messages += header["cmd"] == "p"
        return count > 0


@contextlib.contextmanager
def dead_place() -> Iterator[Tuple[str, int]]:
    """An address that does not answer, because more connections wait there than may."""
    links: List[socket.socket] = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        place: Tuple[str, int] = listener.getsockname()
        try:
            while True:
                links.append(socket.create_connection(place, 0.2))
        except OSError:
            yield place
        finally:
            for link in links:
                link.close()


def found(*places: Tuple[str, int]) -> Any:
    """Makes these the addresses of each host."""
    kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    answer = [(*kind, place) for place in places]
    return mock.patch("socket.getaddrinfo", return_value=answer)


HURRIED = Settings(timeout=1.0)


def begin(connect: Callable[[SlowServer], Client]) -> Tuple[SlowServer, Client]:
    """A server and its client. On a busy machine the logon of a hurried one may come too late: then
    both begin again."""
    end = time.monotonic() + PATIENCE
    while True:
        server = SlowServer()
        try:
            return server, connect(server)
        except ConnectError:
            server.reads.set()
            if time.monotonic() > end:
                raise


async def begin_aio(
    connect: Callable[[SlowServer], Awaitable[aio.Client]],
) -> Tuple[SlowServer, aio.Client]:
    """The same for the other client."""
    end = time.monotonic() + PATIENCE
    while True:
        server = SlowServer()
        try:
            return server, await connect(server)
        except ConnectError:
            server.reads.set()
            if time.monotonic() > end:
                raise


class Blocking(unittest.TestCase):
    def test_a_closed_client_has_sent_everything(self) -> None:
        server = SlowServer()
        client = Client.connect(server.at)
        for _ in range(MESSAGES):
            client.publish("t", MESSAGE)
        server.beat()
        server.reads.set()
        client.close()
        self.assertEqual(server.wait(), MESSAGES)

    def test_a_server_that_reads_nothing_does_not_hold_up_the_end(self) -> None:
        server, client = begin(lambda server: Client.connect(server.at, HURRIED))
        client.close()
        server.reads.set()
        server.wait()

    def test_each_address_has_its_share_of_time(self) -> None:
        with dead_place() as dead:

            def connect(server: SlowServer) -> Client:
                with found(dead, server.place):
                    return Client.connect("host", HURRIED)

            server, client = begin(connect)
        server.reads.set()
        client.close()
        server.wait()

    def test_waits_have_an_end(self) -> None:
        for wrong in (0.0, -1.0, 86_401.0, math.inf, math.nan):
            with self.assertRaisesRegex(ValueError, "a day"):
                Settings(timeout=wrong)
            with self.assertRaisesRegex(ValueError, "a day"):
                Settings(delay_max=wrong)
        Settings(timeout=86_400.0, delay_max=86_400.0)


@needs_server
class Served(unittest.TestCase):
    def test_a_wait_may_be_longer_than_the_system_waits(self) -> None:
        with Server() as server, Client.connect(server.at) as client:
            everything = client.subscribe("t")
            for timeout in (1e12, math.inf):
                client.publish("t", "x")
                self.assertIsNotNone(everything.next(timeout))


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def wait(self, server: SlowServer) -> int:
        return await asyncio.get_running_loop().run_in_executor(None, server.wait)

    async def test_a_closed_client_has_sent_everything(self) -> None:
        server = SlowServer()
        client = await aio.Client.connect(server.at)
        for _ in range(MESSAGES):
            # Not awaited to its end: that waits for the server.
            publishing = asyncio.ensure_future(client.publish("t", MESSAGE))
            await asyncio.sleep(0)
            publishing.cancel()
        server.beat()

        async def read_later() -> None:
            # A client that closed its socket at once would have done so in these turns.
            for _ in range(20):
                await asyncio.sleep(0)
            server.reads.set()

        await asyncio.gather(client.close(), read_later())
        self.assertEqual(await self.wait(server), MESSAGES)

    async def test_a_server_that_reads_nothing_does_not_hold_up_the_end(self) -> None:
        server, client = await begin_aio(lambda server: aio.Client.connect(server.at, HURRIED))
        await client.close()
        server.reads.set()
        await self.wait(server)

    async def test_each_address_has_its_share_of_time(self) -> None:
        with dead_place() as dead:

            async def connect(server: SlowServer) -> aio.Client:
                with found(dead, server.place):
                    return await aio.Client.connect("host", HURRIED)

            server, client = await begin_aio(connect)
        server.reads.set()
        await client.close()
        await self.wait(server)

    async def test_calls_end_with_the_task_that_drives_them(self) -> None:
        server = SlowServer()
        client = await aio.Client.connect(server.at)
        driving = asyncio.all_tasks() - {asyncio.current_task()}
        waiting = asyncio.ensure_future(client.query("t"))
        await asyncio.sleep(0)
        for task in driving:
            task.cancel()
        with self.assertRaisesRegex(LanecastError, "the client has failed: CancelledError"):
            await asyncio.wait_for(waiting, PATIENCE)
        server.reads.set()
        await client.close()
        await self.wait(server)
