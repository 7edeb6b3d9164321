"""The client's session, without a connection and without a clock."""

from __future__ import annotations

import unittest
from typing import Any, Dict, List, Tuple

from test_wire import cut, exchanges

from lanecast import commands, wire
from lanecast.session import Session, EventQueue, Request
from lanecast.errors import ConnectionLost, LanecastError, NameTaken, OtherVersion, Overrun
from lanecast.errors import ProtocolError, Refused
from lanecast.events import Current, Message, OutOfFocus, Record, Resumed
from lanecast.settings import Address, Backoff, Settings, addresses


def said(session: Session) -> List[Tuple[Dict[str, str], bytes]]:
    """Commands in the session's output, with their bodies."""
    commands = []
    for payload in cut(session.output()):
        header, at = wire.read_header(payload)
        commands.append((header, payload[at:]))
    return commands


def ack(number: object, ack_type: str = "processed", **more: wire.Value) -> bytes:
    fields: Dict[str, wire.Value] = {"cmd": "ack", "ack_type": ack_type, "status": "success"}
    return wire.write_frame({**fields, "cmd_id": str(number), **more})


def logged_on(settings: Settings, sequence: int = 0) -> Session:
    session = Session(settings)
    log_on(session, sequence)
    return session


def log_on(session: Session, sequence: int = 0) -> None:
    request = session.connected(0.0)
    ((header, _),) = said(session)
    session.receive(ack(header["cmd_id"], seq=sequence), 0.0)
    assert request.is_done and request.error is None and session.is_logged_on


def follow(session: Session, topic: str) -> EventQueue:
    request = commands.query_and_subscription(
        session, topic, None, order_by=None, top=None, send_oof=True, conflation=None,
        select=None, is_delta=False, options="",
    )  # fmt: skip
    return placed(session, request)


def subscription(session: Session, topic: str, filter: str, **options_given: Any) -> Request:
    given: Dict[str, Any] = {"send_oof": False, "conflation": None, "select": None}
    given = {"is_delta": False, "options": "", **given, **options_given}
    return commands.subscription(session, topic, filter, **given)


def placed(session: Session, request: Request) -> EventQueue:
    session.ask(request)
    ((header, _),) = said(session)
    session.receive(ack(header["cmd_id"]), 0.0)
    assert request.queue is not None and request.is_done and request.error is None
    return request.queue


def events(queue: EventQueue) -> List[Any]:
    found = []
    while (event := queue.take()) is not None:
        found.append(event)
    return found


class Spoken(unittest.TestCase):
    def test_commands_are_those_of_the_independent_client(self) -> None:
        captured = exchanges()

        def says(name: str, last: int, request: Request) -> None:
            session.output()
            session._last = last - 1
            session.ask(request)
            self.assertEqual(session.output(), captured[name], name)

        session = logged_on(Settings(heartbeat=1))
        says("C flush", 4, commands.flush())
        query = commands.query(
            "orders", None, order_by=None, top=None, skip=0, keys=None, select=None, options=""
        )
        query.header = {**query.header, "batch_size": 10}
        says("C sow", 5, query)
        session._last = 6
        both = commands.query_and_subscription(
            session, "orders", "/st = 'open'", order_by=None, top=None, send_oof=True,
            conflation=None, select=None, is_delta=False, options="",
        )  # fmt: skip
        both.header = {**both.header, "batch_size": 10}
        says("C sow_and_subscribe", 7, both)
        by_filter = commands.deletion("orders", "/id = 3", keys=None, like=None)
        says("C sow_delete by filter", 11, by_filter)
        by_body = commands.deletion("orders", None, keys=None, like=b'{"id":1}')
        says("C sow_delete by body", 12, by_body)
        session._last = 12
        assert both.queue is not None
        session.unsubscribe(both.queue)
        self.assertEqual(session.output(), captured["C unsubscribe"])
        session.tick(1.0)
        self.assertEqual(session.output(), captured["C heartbeat beat"])

    def test_wishes_are_options(self) -> None:
        session = logged_on(Settings())
        options_given = {"send_oof": True, "conflation": "1s", "select": "-/,+/a", "is_delta": True}
        session.ask(subscription(session, "t", "/a = 1", **options_given))
        ((header, _),) = said(session)
        self.assertEqual(header["cmd"], "delta_subscribe")
        self.assertEqual(header["opts"], "oof,conflation=1s,select=[-/,+/a]")
        session.ask(subscription(session, "t", "/a = 1"))
        ((header, _),) = said(session)
        self.assertEqual((header["cmd"], header.get("opts")), ("subscribe", None))

    def test_each_subscription_has_a_name_of_its_own(self) -> None:
        session = logged_on(Settings())
        first, second = subscription(session, "a", ""), subscription(session, "b", "")
        session.ask(commands.flush())
        session.ask(first)
        session.ask(second)
        sent = [header for header, _ in said(session)]
        names = [header["sub_id"] for header in sent if "sub_id" in header]
        self.assertEqual(len({*names, sent[0]["cmd_id"]}), 3)
        queues = [session._queues[name] for name in names]
        self.assertEqual(queues, [first.queue, second.queue])

    def test_a_logon_says_who_it_is_and_starts_signs_of_life(self) -> None:
        session = Session(Settings(name="exp-client", user="me", password="secret", heartbeat=1))
        logon = session.connected(0.0)
        self.assertEqual(
            session.output()[4:],
            b'{"c":"logon","cid":"1","a":"processed","client_name":"exp-client","user_id":"me",'
            b'"pw":"secret","version":"0.1.0","mt":"json","protocol_version":1}',
        )
        self.assertNotIn("secret", repr(session.settings))
        session._last = 0
        session._requests = {"0": logon}
        session.receive(exchanges()["S logon"], 0.0)
        self.assertTrue(logon.is_done)
        self.assertEqual(session.output(), exchanges()["C heartbeat start"])

    def test_a_refused_logon_is_final(self) -> None:
        session = Session(Settings())
        waits = session.ask(commands.flush())
        logon = session.connected(0.0)
        session.receive(ack(2, status="failure", reason="auth failure"), 0.0)
        self.assertIsInstance(logon.error, Refused)
        self.assertIs(session.failure, logon.error)
        self.assertEqual(str(waits.error), "cannot log on: the server says: auth failure")


    def test_a_server_of_another_version_is_refused_for_good(self) -> None:
        for version in (0, 2, 2**64 - 1):
            session = Session(Settings())
            logon = session.connected(0.0)
            session.receive(ack(1, seq=0, protocol_version=version), 0.0)
            self.assertIsInstance(logon.error, OtherVersion)
            self.assertIs(session.failure, logon.error)
            self.assertEqual(
                str(logon.error),
                f"cannot log on: the server speaks version {version} of the command protocol, "
                "this client version 1: use one version of lanecast at both ends",
            )
        session = Session(Settings())
        session.connected(0.0)
        session.receive(ack(1, seq=0, protocol_version=1), 0.0)
        self.assertTrue(session.is_logged_on)


class Heard(unittest.TestCase):
    def test_records_then_changes(self) -> None:
        session = logged_on(Settings())
        queue = follow(session, "orders")
        self.assertEqual(queue.name, "2")
        captured = exchanges()
        body = b'{"k":"88","l":8}{"id":1}{"k":"90","l":8}{"id":2}'
        sow: Dict[str, wire.Value] = {"cmd": "sow", "topic": "orders", "query_id": "2"}
        change = {"cmd": "p", "topic": "orders", "sids": "1,2", "sow_key": "5"}
        for frame in (
            captured["S group_begin"],
            wire.write_frame(sow, body),
            wire.write_frame({"cmd": "group_end", "query_id": "2"}),
            captured["S oof"].replace(b'"sids":"7"', b'"sids":"2"'),
            wire.write_frame(change, b"x"),
        ):
            session.receive(frame, 0.0)
        key = "901255563090117366"
        self.assertEqual(
            events(queue),
            [
                Record("orders", b'{"id":1}', "88"),
                Record("orders", b'{"id":2}', "90"),
                Current(),
                OutOfFocus("orders", b'{"id":2,"st":"filled"}', key, ("2",), "match"),
                Message("orders", b"x", "5", ("1", "2")),
            ],
        )
        self.assertEqual(queue.waiting_bytes, 0)

    def test_answers_and_refusals(self) -> None:
        session = logged_on(Settings())
        captured = exchanges()
        session._last = 3
        flush = session.ask(commands.flush())
        session.receive(captured["S processed"], 0.0)
        self.assertFalse(flush.is_done)
        session.receive(captured["S completed"], 0.0)
        self.assertTrue(flush.is_done)
        query = session.ask(
            commands.query(
                "t", "/a =", order_by=None, top=1, skip=2, keys=["1"], select=None, options=""
            )
        )
        session.receive(ack(5, status="failure", reason="bad filter"), 0.0)
        self.assertEqual(str(query.error), "cannot query t: the server says: bad filter")
        doomed = session.ask(commands.deletion("t", None, keys=["1", "2"], like=None))
        session.receive(ack(6, "stats", records_deleted=2), 0.0)
        self.assertEqual(commands.deleted(doomed), 2)
        session.publish(commands.publication("t"), b"x")
        session.receive(ack(7, status="failure", reason="bad message"), 0.0)
        with self.assertRaisesRegex(Refused, "bad message"):
            session.raise_refusal()
        session.raise_refusal()

    def test_senseless_input_is_an_error(self) -> None:
        for frame in (
            b"\0\0\0\1x",
            b"\xff\xff\xff\xff",
            wire.write_frame({"cmd": "dance"}),
            wire.write_frame({"topic": "t"}),
            wire.write_frame({"cmd": "sow"}, b"{}"),
            wire.write_frame({"cmd": "sow"}, b'{"l":9}x'),
            ack(1, seq=-1),
        ):
            session = Session(Settings())
            session.connected(0.0)
            with self.subTest(frame), self.assertRaises(ProtocolError):
                session.receive(frame, 0.0)

    def test_unrequested_replies_do_no_harm(self) -> None:
        session = logged_on(Settings())
        for frame in exchanges().values():
            if frame[4:].startswith((b'{"c":"ack"', b'{"c":"oof"', b'{"c":"group')):
                session.receive(frame, 0.0)
        session.receive(wire.write_frame({"cmd": "p", "sids": ",,9"}), 0.0)
        session.receive(ack("", "persisted", seq=5) + b"\0\0\0\0", 0.0)
        self.assertEqual(session.output(), b"")

    def test_a_slow_reader_loses_the_subscription_alone(self) -> None:
        session = logged_on(Settings(queue_bytes_max=10_000))
        slow, quick = follow(session, "a"), follow(session, "a")
        for _ in range(50):
            names = f"{slow.name},{quick.name}"
            session.receive(wire.write_frame({"cmd": "p", "sids": names}, b"x" * 1_000), 0.0)
            self.assertIsInstance(quick.take(), Message)
        self.assertEqual([header["cmd"] for header, _ in said(session)], ["unsubscribe"])
        for _ in range(8):
            self.assertIsInstance(slow.take(), Message)
        with self.assertRaisesRegex(Overrun, "10000 unread bytes"):
            slow.take()


class Broken(unittest.TestCase):
    def test_a_named_client_sends_again_what_the_server_has_not(self) -> None:
        session = logged_on(Settings(name="me"), sequence=40)
        for text in (b"a", b"b", b"c", b"d"):
            session.publish(commands.publication("t"), text)
        self.assertEqual([header["seq"] for header, _ in said(session)], ["41", "42", "43", "44"])
        session.receive(ack(2), 0.0)
        session.lost("cut")
        log_on(session, sequence=42)
        sent = [(h["seq"], body) for h, body in said(session)]
        self.assertEqual(sent, [("43", b"c"), ("44", b"d")])
        session.receive(ack(4, reason="duplicate: had before") + ack(5), 0.0)
        self.assertTrue(session.is_acknowledged)
        self.assertEqual(session.duplicates, 1)
        session.raise_refusal()

    def test_a_server_that_knows_an_earlier_client_of_the_name_covers_nothing(self) -> None:
        session = Session(Settings(name="me"), sequence=1_000_000)
        log_on(session, sequence=10)
        session.publish(commands.publication("t"), b"a")
        said(session)
        session.lost("cut")
        log_on(session, sequence=1_000)
        self.assertEqual([(h["seq"], body) for h, body in said(session)], [("1000001", b"a")])

    def test_another_program_of_the_same_name_ends_the_session(self) -> None:
        session = logged_on(Settings(name="me"))
        session.publish(commands.publication("t"), b"a")
        session.lost("cut")
        request = session.connected(0.0)
        ((header, _),) = said(session)
        session.receive(ack(header["cmd_id"], seq=1_000), 0.0)
        self.assertIsInstance(request.error, NameTaken)
        self.assertIs(session.failure, request.error)
        self.assertFalse(session.is_acknowledged)

    def test_a_deletion_without_a_connection_is_sent_once_there_is_one(self) -> None:
        session = logged_on(Settings())
        session.lost("cut")
        deletion = commands.deletion("t", "/id = 3", keys=None, like=None)
        session.ask(deletion)
        self.assertEqual(session.output(), b"")
        session.lost("cut again")
        self.assertFalse(deletion.is_done)
        log_on(session)
        self.assertEqual([header["cmd"] for header, _ in said(session)], ["sow_delete"])
        session.lost("cut")
        self.assertIsInstance(deletion.error, ConnectionLost)

    def test_until_persisted_everything_is_sent_again(self) -> None:
        session = logged_on(Settings(name="me", acknowledge="persisted"))
        for text in (b"a", b"b", b"c"):
            session.publish(commands.publication("t"), text)
        said(session)
        session.receive(ack("", "persisted", seq=1), 0.0)
        session.lost("cut")
        log_on(session, sequence=3)
        self.assertEqual([body for _, body in said(session)], [b"b", b"c"])
        session.receive(ack("", "persisted", seq=3), 0.0)
        self.assertTrue(session.is_acknowledged)

    def test_without_a_name_what_may_be_lost_is_said(self) -> None:
        session = logged_on(Settings())
        session.publish(commands.publication("t"), b"a")
        session.lost("cut")
        with self.assertRaisesRegex(ConnectionLost, "1 published messages .* name"):
            session.raise_refusal()
        log_on(session)
        self.assertEqual(session.output(), b"")

    def test_subscriptions_are_placed_again_by_their_names(self) -> None:
        session = logged_on(Settings())
        queue = follow(session, "orders")
        unheard = subscription(session, "t", "/a = 1")
        session.ask(unheard)
        deletion = session.ask(commands.deletion("t", "/a = 1", keys=None, like=None))
        query = session.ask(
            commands.query(
                "t", None, order_by=None, top=None, skip=0, keys=None, select=None, options=""
            )
        )
        said(session)
        session.lost("cut")
        self.assertIsInstance(deletion.error, ConnectionLost)
        log_on(session)
        again = {header["cmd"]: header for header, _ in said(session)}
        self.assertEqual(list(again), ["sow_and_subscribe", "subscribe", "sow"])
        self.assertEqual(again["sow_and_subscribe"]["sub_id"], queue.name)
        self.assertEqual(again["sow_and_subscribe"]["query_id"], queue.name)
        self.assertNotEqual(again["sow_and_subscribe"]["cmd_id"], queue.name)
        self.assertEqual(again["sow"]["query_id"], again["sow"]["cmd_id"])
        self.assertEqual(events(queue), [Resumed("cut")])
        assert unheard.queue is not None
        self.assertEqual(events(unheard.queue), [])
        number = again["sow_and_subscribe"]["cmd_id"]
        session.receive(ack(number, status="failure", reason="not entitled"), 0.0)
        with self.assertRaisesRegex(Refused, "not entitled"):
            queue.take()
        session.receive(ack(again["sow"]["cmd_id"], "completed"), 0.0)
        self.assertTrue(query.is_done)

    def test_records_that_cannot_be_sorted_end_their_subscription_once(self) -> None:
        for is_resumed in (False, True):
            session = logged_on(Settings())
            queue = follow(session, "orders")
            if is_resumed:
                session.lost("cut")
                log_on(session)
                ((again, _),) = said(session)
                session.receive(ack(again["cmd_id"]), 0.0)
                self.assertEqual(queue.take(), Resumed("cut"))
            failure = ack(99, "completed", status="failure", query_id=queue.name, reason="too much")
            session.receive(failure, 0.0)
            with self.assertRaisesRegex(Refused, "query and subscribe to orders: .* too much"):
                queue.take()
            self.assertTrue(queue.has_ended)
            session.lost("cut")
            log_on(session)
            self.assertEqual(said(session), [])
            session.receive(failure, 0.0)

    def test_the_bytes_of_an_answer_are_bounded(self) -> None:
        session = logged_on(Settings(queue_bytes_max=1_000))
        for length, is_whole in ((700, True), (800, False)):
            request = commands.query(
                "orders", None, order_by=None, top=None, skip=0, keys=None, select=None, options=""
            )
            session.ask(request)
            ((header, _),) = said(session)
            record = wire.write_header({"sow_key": "1", "msg_len": length}) + bytes(length)
            batch = {"cmd": "sow", "topic": "orders", "query_id": header["cmd_id"]}
            session.receive(wire.write_frame(batch, record), 0.0)
            # A failed query drops the rest of its answer.
            session.receive(wire.write_frame(batch, record if not is_whole else b""), 0.0)
            session.receive(ack(header["cmd_id"], "completed"), 0.0)
            self.assertTrue(request.is_done)
            self.assertEqual(isinstance(request.error, Overrun), not is_whole)
            self.assertEqual(len(request.records), int(is_whole))

    def test_silence_ends_a_connection(self) -> None:
        session = logged_on(Settings(heartbeat=2))
        self.assertEqual(said(session)[0][0]["opts"], "start,2")
        session.tick(1.0)
        self.assertEqual(said(session)[0][0]["opts"], "beat")
        session.tick(2.0)
        self.assertEqual(session.output(), b"")
        session.receive(wire.write_frame({"cmd": "heartbeat"}), 5.0)
        session.tick(11.0)
        with self.assertRaisesRegex(ConnectionLost, "no heartbeat"):
            session.tick(11.1)

    def test_the_end_reaches_everybody(self) -> None:
        session = logged_on(Settings())
        queue = follow(session, "t")
        request = session.ask(commands.flush())
        session.fail(LanecastError("over"))
        self.assertTrue(request.is_done and queue.has_ended)
        with self.assertRaisesRegex(LanecastError, "over"):
            queue.take()


class Given(unittest.TestCase):
    def test_addresses(self) -> None:
        self.assertEqual(Address.parse("host"), Address("host", 9007, False))
        self.assertEqual(Address.parse("[::1]:7"), Address("::1", 7, False))
        self.assertEqual(Address.parse("[::1]"), Address("::1", 9007, False))
        self.assertEqual(Address.parse("tcps://h"), Address("h", 9007, True))
        self.assertEqual(Address.parse("[fe80::1%eth0]:7"), Address("fe80::1%eth0", 7, False))
        self.assertEqual(str(Address.parse("tcps://h:1/amps/json")), "tcps://h:1")
        self.assertEqual(str(Address.parse("tcp://[::1]:1/")), "tcp://[::1]:1")
        wrong_ports = ("h:", "h:x", "h:65536", "h:+7", ":7")
        wrong_numbers = ("::1", "[::1", "[]", "[h]", "[::1]7", "[::1%]")
        for wrong in ("", "udp://h", "tcp://", "me@h:1", "h h", *wrong_ports, *wrong_numbers):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "write it as"):
                Address.parse(wrong)
        with self.assertRaises(ValueError):
            addresses([])

    def test_settings(self) -> None:
        for wrong in ({"acknowledge": "soon"}, {"timeout": 0.0}, {"heartbeat": 0}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                Settings(**wrong)
        with self.assertRaisesRegex(ValueError, "exactly one"):
            commands.deletion("t", None, keys=None, like=None)

    def test_bodies(self) -> None:
        for given in (b"5", bytearray(b"5"), memoryview(b"5"), "5"):
            self.assertEqual(commands.body_bytes(given), b"5")
        for wrong in (5, None, {"id": 5}, ["5"]):
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, "json.dumps"):
                commands.body_bytes(wrong)  # type: ignore[arg-type]

    def test_waits_grow(self) -> None:
        waits = Backoff(1.0)
        delays = [waits.delay() for _ in range(10)]
        self.assertLess(delays[0], 0.051)
        self.assertTrue(all(0.5 <= delay <= 1.0 for delay in delays[6:]))
        waits.reset()
        self.assertLess(waits.delay(), 0.051)

    def test_a_wait_is_short_again_after_a_connection_that_lasted(self) -> None:
        waits = Backoff(1.0)
        for now in range(10):
            waits.connected(now)
            waits.lost(now + 0.9)
            delay = waits.delay()
        self.assertGreaterEqual(delay, 0.5)
        waits.connected(20.0)
        waits.lost(21.0)
        self.assertLess(waits.delay(), 0.051)


if __name__ == "__main__":
    unittest.main()
