"""The blocking client and a real server."""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Dict, Iterator, List, Optional, Tuple
from unittest import mock

from testbed import PATIENCE, Cable, Server, needs_server

from lanecast import (
    Client,
    Closed,
    ConnectError,
    ConnectionLost,
    Current,
    Message,
    NoAnswer,
    OtherVersion,
    OutOfFocus,
    ProtocolError,
    Record,
    Refused,
    Resumed,
    Settings,
    Subscription,
    wire,
)


def body(number: int, **more: object) -> str:
    return json.dumps({"id": number, **more}, separators=(",", ":"))


def until_current(subscription: Subscription) -> List[Record]:
    """Records before `Current`."""
    records: List[Record] = []
    while True:
        event = subscription.next(PATIENCE)
        if isinstance(event, Current):
            return records
        assert isinstance(event, Record), event
        records.append(event)


@needs_server
class Served(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server("--keep", "stock:json:/id")
        self.addCleanup(self.server.stop)
        self.client = Client.connect(self.server.at)
        self.addCleanup(self.client.close)

    def test_published_messages_come_to_their_subscribers(self) -> None:
        everything = self.client.subscribe("orders")
        some = self.client.subscribe("^ord", "/id > 990")
        with Client.connect(self.server.at) as publisher:
            for number in range(1_000):
                publisher.publish("orders", body(number), correlation="x1")
        for number in range(1_000):
            message = everything.next(PATIENCE)
            assert isinstance(message, Message)
            self.assertEqual(message.json(), {"id": number})
            self.assertEqual((message.topic, message.correlation), ("orders", "x1"))
            self.assertEqual(some.name in message.subscriptions, number > 990)
        for number in range(991, 1_000):
            message = some.next(PATIENCE)
            assert isinstance(message, Message)
            self.assertEqual(message.body, body(number).encode())
        everything.unsubscribe()
        self.assertIsNone(everything.next())
        self.assertIsNone(some.next(0.0))
        self.assertEqual(list(everything), [])

    def test_types_of_messages(self) -> None:
        with Client.connect(self.server.at, Settings(message_type="fix")) as client:
            with client.subscribe("orders", "/55 = 'IBM'") as orders:
                client.publish("orders", b"55=IBM\x0138=7\x01")
                message = orders.next(PATIENCE)
                assert isinstance(message, Message)
                self.assertEqual(message.text, "55=IBM\x0138=7\x01")
                client.publish("orders", b"no tags here")
                with self.assertRaisesRegex(Refused, "bad message"):
                    client.flush()
        with self.assertRaisesRegex(Refused, "cannot log on: .*invalid message type"):
            Client.connect(self.server.at, Settings(message_type="morse"))

    def test_the_state_of_the_world(self) -> None:
        for number in range(500):
            self.client.publish("stock", body(number, even=number % 2 == 0))
        found = self.client.query("stock", "/even = true", order_by="/id DESC", top=100, skip=10)
        self.assertEqual([record.json()["id"] for record in found], list(range(478, 278, -2)))
        by_key = self.client.query("stock", keys=[found[0].key, found[1].key])
        self.assertEqual({record.key for record in by_key}, {found[0].key, found[1].key})

        follow = self.client.query_and_subscribe("stock", "/even = true", order_by="/id")
        records = until_current(follow)
        self.assertEqual([record.json()["id"] for record in records], list(range(0, 500, 2)))
        self.client.publish("stock", body(4, even=True, qty=1))
        self.client.publish("stock", body(6, even=False))
        changed, left = follow.next(PATIENCE), follow.next(PATIENCE)
        assert isinstance(changed, Message) and isinstance(left, OutOfFocus)
        self.assertEqual((changed.key, changed.json()["qty"]), (records[2].key, 1))
        self.assertEqual((left.key, left.reason), (records[3].key, "match"))

        self.assertEqual(self.client.delete("stock", "/id < 4"), 4)
        self.assertEqual(self.client.delete("stock", keys=[records[4].key]), 1)
        self.assertEqual(self.client.delete("stock", like=body(10)), 1)
        gone = [follow.next(PATIENCE) for _ in range(4)]
        self.assertEqual([e.reason for e in gone if isinstance(e, OutOfFocus)], ["deleted"] * 4)
        self.assertEqual(len(self.client.query("stock")), 494)

    def test_deltas(self) -> None:
        self.client.publish("stock", body(1, qty=1, note="a"))
        self.client.flush()
        whole = self.client.query_and_subscribe("stock")
        changes = self.client.query_and_subscribe("stock", delta=True, select="-/note")
        self.assertEqual(len(until_current(whole)), 1)
        records = [record.json() for record in until_current(changes)]
        self.assertEqual(records, [{"id": 1, "qty": 1}])
        passing = self.client.subscribe("stock", delta=True, out_of_focus=True, conflation="10ms")
        self.client.delta_publish("stock", body(1, qty=2))
        self.client.flush()
        for follow, expected in (
            (whole, {"id": 1, "qty": 2, "note": "a"}),
            (changes, {"id": 1, "qty": 2}),
            (passing, {"id": 1, "qty": 2}),
        ):
            message = follow.next(PATIENCE)
            assert isinstance(message, Message)
            self.assertEqual(message.json(), expected)
        self.assertEqual(self.client.delete("stock", like=body(1)), 1)
        left = passing.next(PATIENCE)
        assert isinstance(left, OutOfFocus)
        self.assertEqual(left.reason, "deleted")
        self.client.delta_publish("passing", body(1))
        with self.assertRaises(Refused):
            self.client.flush()

    def test_refusals_are_errors_with_their_reasons(self) -> None:
        with self.assertRaisesRegex(Refused, "cannot subscribe to t: .*bad filter"):
            self.client.subscribe("t", "/a = ")
        with self.assertRaisesRegex(Refused, "passing keeps no records"):
            self.client.query("passing")
        with self.assertRaisesRegex(Refused, "option nonsense"):
            self.client.query_and_subscribe("stock", options="nonsense=1")
        self.client.publish("", b"x")
        with self.assertRaisesRegex(Refused, "cannot publish message 1: .*topic is missing"):
            self.client.flush()
        self.client.publish("t", b"the next one is good")
        self.client.flush()

    def test_a_closed_client_says_so(self) -> None:
        follow = self.client.subscribe("t")
        self.client.close()
        with self.assertRaises(Closed):
            follow.next()
        with self.assertRaises(Closed):
            self.client.publish("t", b"x")
        self.client.close()

    def test_signs_of_life(self) -> None:
        with Client.connect(self.server.at, Settings(heartbeat=1)) as client:
            follow = client.subscribe("t")
            # More than the server bears in silence.
            self.assertIsNone(follow.next(3.5))
            client.publish("t", b"{}")
            self.assertIsInstance(follow.next(PATIENCE), Message)


@needs_server
class Cut(unittest.TestCase):
    def test_every_message_once_however_connections_break(self) -> None:
        chance = random.Random(5)
        lengths = [chance.randint(1, 60_000) for _ in range(25)]
        states: List[str] = []
        settings = Settings(
            name="desk", timeout=PATIENCE, delay_max=0.05, unacknowledged_max=500,
            on_state=lambda state, why: states.append(state),
        )  # fmt: skip
        with Server() as server, Client.connect(server.at) as reader:
            everything = reader.subscribe("orders")
            cable = Cable(server.at, lengths)
            self.addCleanup(cable.close)
            cuts, count = [0], 0
            client = connected(cable.at, settings, cuts)
            while not cable.is_used_up or count < 5_000:
                client.publish("orders", body(count))
                count += 1
                if count % 400 == 0:
                    client.flush()
            client.flush()
            client.close()
            for number in range(count):
                message = everything.next(PATIENCE)
                assert isinstance(message, Message)
                self.assertEqual(message.json()["id"], number)
            self.assertIsNone(everything.next(0.0))
        self.assertGreaterEqual(states.count("connected"), 15)

    def test_followed_subscriptions_are_resumed(self) -> None:
        with Server("--keep", "stock:json:/id") as server, Client.connect(server.at) as direct:
            direct.publish("stock", body(1))
            direct.publish("stock", body(2))
            direct.flush()
            cable = Cable(server.at, [])
            self.addCleanup(cable.close)
            with Client.connect(cable.at, Settings(delay_max=0.05, timeout=PATIENCE)) as client:
                follow = client.query_and_subscribe("stock", order_by="/id")
                passing = client.subscribe("t")
                self.assertEqual([r.json()["id"] for r in until_current(follow)], [1, 2])
                cable.cut()
                direct.delete("stock", "/id = 1")
                direct.publish("stock", body(3))
                direct.flush()
                resumed = follow.next(PATIENCE)
                assert isinstance(resumed, Resumed)
                self.assertIn("the connection has ended", resumed.why)
                self.assertEqual([r.json()["id"] for r in until_current(follow)], [2, 3])
                self.assertIsInstance(passing.next(PATIENCE), Resumed)
                client.flush()
                direct.publish("t", b"{}")
                self.assertIsInstance(passing.next(PATIENCE), Message)

    def test_servers_are_tried_one_after_the_other(self) -> None:
        with Server() as first, Server() as second:
            settings = Settings(delay_max=0.05, timeout=PATIENCE)
            client = Client.connect(["127.0.0.1:1", first.at, second.at], settings)
            self.addCleanup(client.close)
            follow = client.subscribe("t")
            first.stop()
            self.assertIsInstance(follow.next(PATIENCE), Resumed)
            with Client.connect(second.at) as other:
                client.flush()
                other.publish("t", b"{}")
            self.assertIsInstance(follow.next(PATIENCE), Message)

    def test_a_server_that_comes_back(self) -> None:
        with Server() as server:
            at = server.at
            client = Client.connect(at, Settings(delay_max=0.05, timeout=PATIENCE))
            self.addCleanup(client.close)
            follow = client.subscribe("t")
        self.assertIsNone(follow.next(0.2))
        with Server(listen=at) as server:
            self.assertIsInstance(follow.next(PATIENCE), Resumed)
            client.publish("t", b"{}")
            self.assertIsInstance(follow.next(PATIENCE), Message)

    def test_a_program_that_polls_connects_again(self) -> None:
        with Server() as server:
            at = server.at
            client = Client.connect(at, Settings(delay_max=0.05, timeout=PATIENCE))
            self.addCleanup(client.close)
            follow = client.subscribe("t")
        with Server(listen=at) as server:
            event, end = None, time.monotonic() + PATIENCE
            while event is None and time.monotonic() < end:
                event = follow.next(0)
            self.assertIsInstance(event, Resumed)

    def test_without_reconnecting_the_end_is_final(self) -> None:
        with Server() as server:
            client = Client.connect(server.at, Settings(reconnect=False))
            self.addCleanup(client.close)
            follow = client.subscribe("t")
        with self.assertRaisesRegex(ConnectionLost, "the server has closed it|broke"):
            follow.next(PATIENCE)
        with self.assertRaises(ConnectionLost):
            client.flush()


def connected(at: str, settings: Settings, cuts: List[int]) -> Client:
    """Connects again until a logon succeeds: the first connections may break before."""
    for _ in range(100):
        try:
            return Client.connect(at, settings)
        except (ConnectError, ConnectionLost):
            cuts[0] += 1
    raise AssertionError("no connection lasted")


class Encrypted(unittest.TestCase):
    def test_a_server_shows_who_it_is(self) -> None:
        with certificate() as (cert, key):
            shows = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            shows.load_cert_chain(cert, key)
            knows = ssl.create_default_context(cafile=cert)
        header = {"cmd": "ack", "ack_type": "processed", "status": "success", "cmd_id": "1"}
        at = serve(self, wire.write_frame(header), shows)
        client = Client.connect(f"tcps://{at}", Settings(tls=knows))
        client.close()
        at = serve(self, b"", shows)
        with self.assertRaisesRegex(ConnectError, "CERTIFICATE_VERIFY_FAILED"):
            Client.connect(f"tcps://{at}")


@needs_server
class EncryptedByTheServer(unittest.TestCase):
    def test_messages_come_and_plain_words_are_refused(self) -> None:
        with certificate() as (cert, key):
            config = f"{cert}.toml"
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"[tls]\ncertificate = '{cert}'\nkey = '{key}'\n")
            server = Server("--config", config)
            self.addCleanup(server.stop)
            knows = ssl.create_default_context(cafile=cert)
        client = Client.connect(f"tcps://{server.at}", Settings(tls=knows))
        self.addCleanup(client.close)
        follow = client.subscribe("t")
        for number in range(50):
            client.publish("t", body(number, text="x" * (number * 2_000)))
        for number in range(50):
            message = follow.next(PATIENCE)
            assert isinstance(message, Message)
            self.assertEqual(json.loads(message.body)["id"], number)
        with self.assertRaisesRegex(Refused, "connect with tcps://"):
            Client.connect(server.at)


@contextlib.contextmanager
def certificate() -> Iterator[Tuple[str, str]]:
    """Files with a certificate of 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        raise unittest.SkipTest("openssl is not there to make a certificate")
    with tempfile.TemporaryDirectory() as room:
        cert, key = f"{room}/cert.pem", f"{room}/key.pem"
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        names = ["-subj", "/CN=desk", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(
            [*command.split(), *names, "-keyout", key, "-out", cert],
            check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
        yield cert, key


def serve(test: unittest.TestCase, answer: bytes, tls: Optional[ssl.SSLContext] = None) -> str:
    """A server that answers any bytes with fixed bytes, and then nothing."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        link, _ = listener.accept()
        link.settimeout(PATIENCE)
        try:
            with link if tls is None else tls.wrap_socket(link, server_side=True) as link:
                link.recv(65_536)
                link.sendall(answer)
                while link.recv(65_536):
                    pass
        except OSError:
            # The client went.
            link.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    test.addCleanup(thread.join, PATIENCE)
    test.addCleanup(listener.close)
    return "127.0.0.1:%d" % listener.getsockname()[1]


class Turncoat:
    """A server that accepts each logon and closes the connection; for `with`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.logons = 0
        self._start = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            with link:
                link.settimeout(PATIENCE)
                number = re.search(rb'"(?:cmd_id|cid)":"(\d+)"', link.recv(65_536))
                assert number is not None
                answer = b'{"c":"ack","a":"processed","status":"success","cid":"%s","s":0}'
                answer %= number[1]
                link.sendall(len(answer).to_bytes(4, "big") + answer)
                self.logons += 1

    def most_logons(self) -> float:
        """As many as there may be by now of one client: it waits for 25 ms at least after the first,
        then for twice that, and so on."""
        return 2 + math.log2(1 + (time.monotonic() - self._start) / 0.025)

    def __enter__(self) -> Turncoat:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)


def logon_ack(version: int) -> bytes:
    """The answer to a first logon, from a server that speaks this version of the protocol."""
    fields: Dict[str, wire.Value] = {"cmd": "ack", "ack_type": "processed", "status": "success"}
    return wire.write_frame({**fields, "cmd_id": "1", "seq": 0, "protocol_version": version})


def refusal_by_server(version: int) -> str:
    """The words for a client of another version."""
    return (
        "cannot log on: the server says: bad protocol_version: this client speaks version "
        f"{version} of the command protocol, this server version {wire.PROTOCOL_VERSION}: use one "
        "version of lanecast at both ends"
    )


def refusal_by_client(version: int) -> str:
    """The words for a server of another version."""
    return (
        f"cannot log on: the server speaks version {version} of the command protocol, this client "
        f"version {wire.PROTOCOL_VERSION}: use one version of lanecast at both ends"
    )


OTHER_VERSIONS = (wire.PROTOCOL_VERSION - 1, wire.PROTOCOL_VERSION + 1)


class Versions(unittest.TestCase):
    """Programs of two versions."""

    @needs_server
    def test_the_server_refuses_other_clients_in_words(self) -> None:
        with Server() as server:
            for version in OTHER_VERSIONS:
                words = refusal_by_server(version)
                with mock.patch.object(wire, "PROTOCOL_VERSION", version):
                    with self.assertRaises(Refused) as raised:
                        Client.connect(server.at)
                self.assertEqual(str(raised.exception), words)
            Client.connect(server.at).close()

    def test_the_client_refuses_other_servers_in_words(self) -> None:
        for version in OTHER_VERSIONS:
            with self.assertRaises(OtherVersion) as raised:
                Client.connect(serve(self, logon_ack(version)))
            self.assertEqual(str(raised.exception), refusal_by_client(version))
            self.assertEqual(raised.exception.server, version)


class Hostile(unittest.TestCase):
    """Peers that are not content servers."""

    def test_a_connection_that_does_not_last_is_no_reason_to_hurry(self) -> None:
        end, is_late = time.monotonic() + PATIENCE, True
        while is_late:
            with Turncoat() as server:
                # On a busy machine its logon may come too late: then both begin again.
                try:
                    client = Client.connect(server.at, Settings(timeout=1.0))
                except ConnectError:
                    self.assertLess(time.monotonic(), end)
                    continue
                is_late = False
                with self.assertRaises(NoAnswer):
                    client.subscribe("t")
                self.assertLess(server.logons, server.most_logons())
                client.close()

    def test_garbage(self) -> None:
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\2{]", b"\0\0\0\7{\"c\":1}"):
            with self.subTest(answer), self.assertRaises(ProtocolError):
                Client.connect(serve(self, answer))

    def test_silence(self) -> None:
        with self.assertRaisesRegex(ConnectError, "cannot log on to .*: no answer within 0.2 s"):
            Client.connect(serve(self, b""), Settings(timeout=0.2))
        self.assertTrue(issubclass(NoAnswer, Exception))

    def test_no_listener(self) -> None:
        with self.assertRaisesRegex(ConnectError, "cannot connect to tcp://127.0.0.1:1: "):
            Client.connect(["127.0.0.1:1", "tcp://[::1]:1"], Settings(timeout=2.0))


if __name__ == "__main__":
    unittest.main()
