"""The client for asyncio and a real server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import threading
import time
import unittest
from typing import List
from unittest import mock

from testbed import PATIENCE, Cable, Server, needs_server
from test_blocking import OTHER_VERSIONS, Turncoat, body
from test_blocking import logon_ack, refusal_by_client, refusal_by_server

from lanecast import (
    Closed,
    ConnectError,
    ConnectionLost,
    Current,
    LanecastError,
    Message,
    NoAnswer,
    OtherVersion,
    OutOfFocus,
    Overrun,
    ProtocolError,
    Refused,
    Resumed,
    Settings,
    wire,
)
from lanecast.aio import Client, Subscription
from lanecast.settings import addresses


# Tests of asyncio run in its debug mode, which tells of every step that took long.
logging.getLogger("asyncio").setLevel(logging.ERROR)


async def json_ids(subscription: Subscription, count: int) -> List[int]:
    """The ids of the next messages."""
    ids = []
    for _ in range(count):
        event = await subscription.next(PATIENCE)
        assert isinstance(event, Message), event
        ids.append(int(event.json()["id"]))
    return ids


@needs_server
class Served(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.server = Server("--keep", "stock:json:/id")
        self.addCleanup(self.server.stop)
        self.client = await Client.connect(self.server.at, Settings(timeout=PATIENCE))
        self.addAsyncCleanup(self.client.close)

    async def test_subscriptions_and_queries_at_once(self) -> None:
        subscribed = [self.client.subscribe(topic) for topic in ("a", "b")]
        first, records, second = await asyncio.gather(
            subscribed[0], self.client.query("stock"), subscribed[1]
        )
        self.assertEqual(records, [])
        for topic, follow in (("a", first), ("b", second)):
            await self.client.publish(topic, b"{}")
            event = await follow.next(PATIENCE)
            assert isinstance(event, Message), event
            self.assertEqual(event.topic, topic)

    async def test_many_tasks_at_once(self) -> None:
        filters = [None, "/id < 100", "/id >= 900"]
        followed = [await self.client.subscribe("orders", filter) for filter in filters]
        counts = [1_000, 100, 100]
        readers = [json_ids(*pair) for pair in zip(followed, counts)]

        async def publish() -> None:
            async with await Client.connect(self.server.at) as publisher:
                for number in range(1_000):
                    await publisher.publish("orders", body(number))

        found = await asyncio.gather(*readers, publish())
        self.assertEqual(found[0], list(range(1_000)))
        self.assertEqual(found[1], list(range(100)))
        self.assertEqual(found[2], list(range(900, 1_000)))

    async def test_the_state_of_the_world(self) -> None:
        for number in range(300):
            await self.client.publish("stock", body(number))
        records = await self.client.query("stock", "/id < 200", order_by="/id DESC", top=5)
        self.assertEqual([record.json()["id"] for record in records], [199, 198, 197, 196, 195])
        async with await self.client.query_and_subscribe("stock", "/id < 200") as follow:
            async for event in follow:
                if isinstance(event, Current):
                    break
            self.assertEqual(await self.client.delete("stock", "/id = 7"), 1)
            left = await follow.next(PATIENCE)
            assert isinstance(left, OutOfFocus)
            self.assertEqual((left.json()["id"], left.reason), (7, "deleted"))
        self.assertIsNone(await follow.next())

    async def test_deltas(self) -> None:
        await self.client.publish("stock", body(1, qty=1, note="a"))
        await self.client.flush()
        changes = await self.client.subscribe(
            "stock", delta=True, out_of_focus=True, select="-/note"
        )
        await self.client.delta_publish("stock", body(1, qty=2), correlation="c", expiration=60)
        message = await changes.next(PATIENCE)
        assert isinstance(message, Message)
        self.assertEqual((message.json(), message.correlation), ({"id": 1, "qty": 2}, "c"))
        (record,) = await self.client.query("stock", select="-/,+/note")
        self.assertEqual(record.json(), {"note": "a"})
        self.assertEqual(await self.client.delete("stock", like=body(1, qty=0)), 1)
        left = await changes.next(PATIENCE)
        assert isinstance(left, OutOfFocus)
        self.assertEqual((left.json()["id"], left.reason), (1, "deleted"))

    async def test_waiting_can_be_cancelled(self) -> None:
        follow = await self.client.subscribe("t")
        waiting = asyncio.ensure_future(follow.next())
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        query = asyncio.ensure_future(self.client.query("stock"))
        await asyncio.sleep(0)
        query.cancel()
        self.assertIsNone(await follow.next(0.01))
        await self.client.publish("t", body(1))
        self.assertEqual(await json_ids(follow, 1), [1])

    async def test_refusals_and_the_end(self) -> None:
        with self.assertRaisesRegex(Refused, "bad filter"):
            await self.client.subscribe("t", "/a = ")
        await self.client.publish("", b"x")
        with self.assertRaisesRegex(Refused, "topic is missing"):
            await self.client.flush()
        with self.assertRaisesRegex(Refused, "invalid message type"):
            await Client.connect(self.server.at, Settings(message_type="morse"))
        follow = await self.client.subscribe("t")
        waiting = asyncio.ensure_future(follow.next())
        await asyncio.sleep(0)
        await self.client.close()
        with self.assertRaises(Closed):
            await waiting
        with self.assertRaises(Closed):
            await self.client.flush()

    async def test_one_slow_reader_ends_alone(self) -> None:
        settings = Settings(queue_bytes_max=20_000, timeout=PATIENCE)
        async with await Client.connect(self.server.at, settings) as client:
            slow, quick = await client.subscribe("t"), await client.subscribe("t")
            for number in range(200):
                await self.client.publish("t", body(number, text="x" * 1_000))
                self.assertEqual(await json_ids(quick, 1), [number])
            with self.assertRaisesRegex(Overrun, "20000 unread bytes"):
                await json_ids(slow, 200)

    async def test_signs_of_life(self) -> None:
        async with await Client.connect(self.server.at, Settings(heartbeat=1)) as client:
            follow = await client.subscribe("t")
            self.assertIsNone(await follow.next(3.5))
            await client.publish("t", body(1))
            self.assertEqual(await json_ids(follow, 1), [1])


@needs_server
class Cut(unittest.IsolatedAsyncioTestCase):
    async def test_every_message_once_however_connections_break(self) -> None:
        chance = random.Random(9)
        lengths = [chance.randint(300, 60_000) for _ in range(20)]
        settings = Settings(name="desk", timeout=PATIENCE, delay_max=0.05, unacknowledged_max=500)
        with Server() as server:
            cable = Cable(server.at, lengths)
            self.addCleanup(cable.close)
            async with await Client.connect(server.at) as reader:
                everything = await reader.subscribe("orders")
                count = 0
                async with await Client.connect(cable.at, settings) as client:
                    while not cable.is_used_up or count < 5_000:
                        await client.publish("orders", body(count))
                        count += 1
                self.assertEqual(await json_ids(everything, count), list(range(count)))
                self.assertIsNone(await everything.next(0.01))

    async def test_followed_subscriptions_are_resumed(self) -> None:
        with Server("--keep", "stock:json:/id") as server:
            cable = Cable(server.at, [])
            self.addCleanup(cable.close)
            settings = Settings(delay_max=0.05, timeout=PATIENCE)
            async with await Client.connect(cable.at, settings) as client:
                follow = await client.query_and_subscribe("stock")
                self.assertEqual(await follow.next(PATIENCE), Current())
                cable.cut()
                self.assertIsInstance(await follow.next(PATIENCE), Resumed)
                self.assertEqual(await follow.next(PATIENCE), Current())

    async def test_an_error_of_the_application_does_not_stop_the_client(self) -> None:
        def fails(state: str, _: str) -> None:
            raise ValueError(state)

        with Server() as server, self.assertLogs("lanecast", logging.ERROR):
            cable = Cable(server.at, [])
            self.addCleanup(cable.close)
            settings = Settings(delay_max=0.05, timeout=PATIENCE, on_state=fails)
            async with await Client.connect(cable.at, settings) as client:
                follow = await client.subscribe("t")
                cable.cut()
                self.assertIsInstance(await follow.next(PATIENCE), Resumed)


class Hostile(unittest.IsolatedAsyncioTestCase):
    @needs_server
    async def test_the_server_refuses_clients_of_other_versions_in_words(self) -> None:
        with Server() as server:
            for version in OTHER_VERSIONS:
                words = refusal_by_server(version)
                with mock.patch.object(wire, "PROTOCOL_VERSION", version):
                    with self.assertRaises(Refused) as raised:
                        await Client.connect(server.at)
                self.assertEqual(str(raised.exception), words)
            await (await Client.connect(server.at)).close()

    async def test_servers_of_other_versions_are_refused_in_words(self) -> None:
        for version in OTHER_VERSIONS:
            with self.assertRaises(OtherVersion) as raised:
                await Client.connect(await self.serve(logon_ack(version)))
            self.assertEqual(str(raised.exception), refusal_by_client(version))

    async def serve(self, *answers: bytes) -> str:
        """A server that gives these answers to any request, and then none."""

        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for answer in answers:
                await reader.read(65_536)
                writer.write(answer)
            while await reader.read(65_536):
                pass
            writer.close()

        server = await asyncio.start_server(run, "127.0.0.1", 0)
        self.addCleanup(server.close)
        return "127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    async def test_a_connection_that_the_system_gave_up_is_lost(self) -> None:
        client = Client(addresses("127.0.0.1:1"), Settings())
        reader = asyncio.StreamReader()
        reader.set_exception(TimeoutError("Connection timed out"))
        with self.assertRaises((ConnectionLost, OSError)):
            await client._step(reader)

    async def test_a_server_that_reads_nothing_ends_the_connection(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        links: List[socket.socket] = []

        def run() -> None:
            link = listener.accept()[0]
            links.append(link)
            with contextlib.suppress(OSError):
                link.recv(65_536)
                link.sendall(logon_ack(wire.PROTOCOL_VERSION))

        at = "127.0.0.1:%d" % listener.getsockname()[1]
        end, client = time.monotonic() + PATIENCE, None
        while client is None:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            # On a busy machine its logon may come too late: then both begin again.
            try:
                client = await Client.connect(at, Settings(timeout=1.0, reconnect=False))
            except ConnectError:
                self.assertLess(time.monotonic(), end)

        async def publish() -> None:
            while True:
                await client.publish("t", bytes(100_000))

        with self.assertRaises(ConnectionLost):
            await asyncio.wait_for(publish(), PATIENCE)
        await client.close()
        thread.join(PATIENCE)
        for link in links:
            link.close()

    async def test_a_connection_that_does_not_last_is_no_reason_to_hurry(self) -> None:
        end, is_late = time.monotonic() + PATIENCE, True
        while is_late:
            with Turncoat() as server:
                # On a busy machine its logon may come too late: then both begin again.
                try:
                    client = await Client.connect(server.at, Settings(timeout=1.0))
                except ConnectError:
                    self.assertLess(time.monotonic(), end)
                    continue
                is_late = False
                with self.assertRaises(NoAnswer):
                    await client.subscribe("t")
                self.assertLess(server.logons, server.most_logons())
                await client.close()

    async def test_garbage_and_silence(self) -> None:
        with self.assertRaises(ProtocolError):
            await Client.connect(await self.serve(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        with self.assertRaisesRegex(ConnectError, "no answer within 0.2 s"):
            await Client.connect(await self.serve(b""), Settings(timeout=0.2))
        with self.assertRaisesRegex(ConnectError, "cannot connect to tcp://127.0.0.1:1: "):
            await Client.connect("127.0.0.1:1", Settings(timeout=2.0))
        logged_on = b'{"c":"ack","a":"processed","status":"success","cid":"1","s":0}'
        frame = len(logged_on).to_bytes(4, "big") + logged_on
        client = await Client.connect(await self.serve(frame, b"\0\0\0\1?"))
        with self.assertRaisesRegex(ProtocolError, "a header begins with"):
            await client.subscribe("t")
        with self.assertRaises(LanecastError):
            await client.publish("t", b"x")
        await client.close()


if __name__ == "__main__":
    unittest.main()
