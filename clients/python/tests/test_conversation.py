"""What a client says and hears, without a connection and without a clock."""

from __future__ import annotations

import unittest
from typing import Any, Dict, List, Tuple

from test_wire import cut, exchanges

from lanecast import commands, wire
from lanecast.conversation import Conversation, Feed, Task
from lanecast.errors import ConnectionLost, LanecastError, Overrun, ProtocolError, Refused
from lanecast.events import Current, Left, Message, Record, Resumed
from lanecast.settings import Address, Backoff, Settings, addresses


def said(talk: Conversation) -> List[Tuple[Dict[str, str], bytes]]:
    """The commands that are to be sent, and their bodies."""
    commands = []
    for payload in cut(talk.output()):
        header, at = wire.read_header(payload)
        commands.append((header, payload[at:]))
    return commands


def ack(number: object, ack_type: str = "processed", **more: wire.Value) -> bytes:
    fields: Dict[str, wire.Value] = {"cmd": "ack", "ack_type": ack_type, "status": "success"}
    return wire.write_frame({**fields, "cmd_id": str(number), **more})


def logged_on(settings: Settings, sequence: int = 0) -> Conversation:
    talk = Conversation(settings)
    log_on(talk, sequence)
    return talk


def log_on(talk: Conversation, sequence: int = 0) -> None:
    task = talk.connected(0.0)
    ((header, _),) = said(talk)
    talk.receive(ack(header["cmd_id"], seq=sequence), 0.0)
    assert task.is_done and task.error is None and talk.is_logged_on


def follow(talk: Conversation, topic: str) -> Feed:
    task = commands.question_and_subscription(
        talk, topic, None, order_by=None, top=None, tells_left=True, conflation=None,
        select=None, is_delta=False, options="",
    )  # fmt: skip
    return placed(talk, task)


def subscription(talk: Conversation, topic: str, filter: str, **wishes: Any) -> Task:
    given: Dict[str, Any] = {"tells_left": False, "conflation": None, "select": None}
    given = {"is_delta": False, "options": "", **given, **wishes}
    return commands.subscription(talk, topic, filter, **given)


def placed(talk: Conversation, task: Task) -> Feed:
    talk.ask(task)
    ((header, _),) = said(talk)
    talk.receive(ack(header["cmd_id"]), 0.0)
    assert task.feed is not None and task.is_done and task.error is None
    return task.feed


def events(feed: Feed) -> List[Any]:
    found = []
    while (event := feed.take()) is not None:
        found.append(event)
    return found


class Spoken(unittest.TestCase):
    def test_commands_are_those_of_the_independent_client(self) -> None:
        captured = exchanges()

        def says(name: str, last: int, task: Task) -> None:
            talk.output()
            talk._last = last - 1
            talk.ask(task)
            self.assertEqual(talk.output(), captured[name], name)

        talk = logged_on(Settings(heartbeat=1))
        says("C flush", 4, commands.flush())
        question = commands.question(
            "orders", None, order_by=None, top=None, skip=0, keys=None, select=None, options=""
        )
        question.header = {**question.header, "batch_size": 10}
        says("C sow", 5, question)
        talk._last = 6
        both = commands.question_and_subscription(
            talk, "orders", "/st = 'open'", order_by=None, top=None, tells_left=True,
            conflation=None, select=None, is_delta=False, options="",
        )  # fmt: skip
        both.header = {**both.header, "batch_size": 10}
        says("C sow_and_subscribe", 7, both)
        by_filter = commands.deletion("orders", "/id = 3", keys=None, like=None)
        says("C sow_delete by filter", 11, by_filter)
        by_body = commands.deletion("orders", None, keys=None, like=b'{"id":1}')
        says("C sow_delete by body", 12, by_body)
        talk._last = 12
        assert both.feed is not None
        talk.unsubscribe(both.feed)
        self.assertEqual(talk.output(), captured["C unsubscribe"])
        talk.tick(1.0)
        self.assertEqual(talk.output(), captured["C heartbeat beat"])

    def test_wishes_are_options(self) -> None:
        talk = logged_on(Settings())
        wishes = {"tells_left": True, "conflation": "1s", "select": "-/,+/a", "is_delta": True}
        talk.ask(subscription(talk, "t", "/a = 1", **wishes))
        ((header, _),) = said(talk)
        self.assertEqual(header["cmd"], "delta_subscribe")
        self.assertEqual(header["opts"], "oof,conflation=1s,select=[-/,+/a]")
        talk.ask(subscription(talk, "t", "/a = 1"))
        ((header, _),) = said(talk)
        self.assertEqual((header["cmd"], header.get("opts")), ("subscribe", None))

    def test_a_logon_says_who_it_is_and_starts_signs_of_life(self) -> None:
        talk = Conversation(Settings(name="exp-client", user="me", password="secret", heartbeat=1))
        logon = talk.connected(0.0)
        self.assertEqual(
            talk.output()[4:],
            b'{"c":"logon","cid":"1","a":"processed","client_name":"exp-client","user_id":"me",'
            b'"pw":"secret","version":"0.1.0","mt":"json"}',
        )
        self.assertNotIn("secret", repr(talk.settings))
        talk._last = 0
        talk._tasks = {"0": logon}
        talk.receive(exchanges()["S logon"], 0.0)
        self.assertTrue(logon.is_done)
        self.assertEqual(talk.output(), exchanges()["C heartbeat start"])

    def test_a_refused_logon_is_final(self) -> None:
        talk = Conversation(Settings())
        waits = talk.ask(commands.flush())
        logon = talk.connected(0.0)
        talk.receive(ack(2, status="failure", reason="auth failure"), 0.0)
        self.assertIsInstance(logon.error, Refused)
        self.assertIs(talk.failure, logon.error)
        self.assertEqual(str(waits.error), "cannot log on: the server says: auth failure")


class Heard(unittest.TestCase):
    def test_records_then_changes(self) -> None:
        talk = logged_on(Settings())
        feed = follow(talk, "orders")
        self.assertEqual(feed.name, "2")
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
            talk.receive(frame, 0.0)
        key = "901255563090117366"
        self.assertEqual(
            events(feed),
            [
                Record("orders", b'{"id":1}', "88"),
                Record("orders", b'{"id":2}', "90"),
                Current(),
                Left("orders", b'{"id":2,"st":"filled"}', key, ("2",), "match"),
                Message("orders", b"x", "5", ("1", "2")),
            ],
        )
        self.assertEqual(feed.waiting_bytes, 0)

    def test_answers_and_refusals(self) -> None:
        talk = logged_on(Settings())
        captured = exchanges()
        talk._last = 3
        flush = talk.ask(commands.flush())
        talk.receive(captured["S processed"], 0.0)
        self.assertFalse(flush.is_done)
        talk.receive(captured["S completed"], 0.0)
        self.assertTrue(flush.is_done)
        query = talk.ask(
            commands.question(
                "t", "/a =", order_by=None, top=1, skip=2, keys=["1"], select=None, options=""
            )
        )
        talk.receive(ack(5, status="failure", reason="bad filter"), 0.0)
        self.assertEqual(str(query.error), "cannot query t: the server says: bad filter")
        doomed = talk.ask(commands.deletion("t", None, keys=["1", "2"], like=None))
        talk.receive(ack(6, "stats", records_deleted=2), 0.0)
        self.assertEqual(commands.deleted(doomed), 2)
        talk.publish(commands.publication("t"), b"x")
        talk.receive(ack(7, status="failure", reason="bad message"), 0.0)
        with self.assertRaisesRegex(Refused, "bad message"):
            talk.complain()
        talk.complain()

    def test_what_makes_no_sense_is_an_error(self) -> None:
        for frame in (
            b"\0\0\0\1x",
            b"\xff\xff\xff\xff",
            wire.write_frame({"cmd": "dance"}),
            wire.write_frame({"topic": "t"}),
            wire.write_frame({"cmd": "sow"}, b"{}"),
            wire.write_frame({"cmd": "sow"}, b'{"l":9}x'),
            ack(1, seq=-1),
        ):
            talk = Conversation(Settings())
            talk.connected(0.0)
            with self.subTest(frame), self.assertRaises(ProtocolError):
                talk.receive(frame, 0.0)

    def test_what_nobody_asked_for_does_no_harm(self) -> None:
        talk = logged_on(Settings())
        for frame in exchanges().values():
            if frame[4:].startswith((b'{"c":"ack"', b'{"c":"oof"', b'{"c":"group')):
                talk.receive(frame, 0.0)
        talk.receive(wire.write_frame({"cmd": "p", "sids": ",,9"}), 0.0)
        talk.receive(ack("", "persisted", seq=5) + b"\0\0\0\0", 0.0)
        self.assertEqual(talk.output(), b"")

    def test_who_reads_too_slowly_loses_the_subscription_alone(self) -> None:
        talk = logged_on(Settings(queue_bytes_max=10_000))
        slow, quick = follow(talk, "a"), follow(talk, "a")
        for _ in range(50):
            names = f"{slow.name},{quick.name}"
            talk.receive(wire.write_frame({"cmd": "p", "sids": names}, b"x" * 1_000), 0.0)
            self.assertIsInstance(quick.take(), Message)
        self.assertEqual([header["cmd"] for header, _ in said(talk)], ["unsubscribe"])
        for _ in range(8):
            self.assertIsInstance(slow.take(), Message)
        with self.assertRaisesRegex(Overrun, "10000 bytes"):
            slow.take()


class Broken(unittest.TestCase):
    def test_a_named_client_sends_again_what_the_server_has_not(self) -> None:
        talk = logged_on(Settings(name="me"), sequence=40)
        for text in (b"a", b"b", b"c", b"d"):
            talk.publish(commands.publication("t"), text)
        self.assertEqual([header["seq"] for header, _ in said(talk)], ["41", "42", "43", "44"])
        talk.receive(ack(2), 0.0)
        talk.lost("cut")
        log_on(talk, sequence=42)
        self.assertEqual([(h["seq"], body) for h, body in said(talk)], [("43", b"c"), ("44", b"d")])
        talk.receive(ack(4, reason="duplicate: had before") + ack(5), 0.0)
        self.assertTrue(talk.is_caught_up)
        self.assertEqual(talk.duplicates, 1)
        talk.complain()

    def test_until_persisted_everything_is_sent_again(self) -> None:
        talk = logged_on(Settings(name="me", acknowledge="persisted"))
        for text in (b"a", b"b", b"c"):
            talk.publish(commands.publication("t"), text)
        said(talk)
        talk.receive(ack("", "persisted", seq=1), 0.0)
        talk.lost("cut")
        log_on(talk, sequence=3)
        self.assertEqual([body for _, body in said(talk)], [b"b", b"c"])
        talk.receive(ack("", "persisted", seq=3), 0.0)
        self.assertTrue(talk.is_caught_up)

    def test_without_a_name_what_may_be_lost_is_said(self) -> None:
        talk = logged_on(Settings())
        talk.publish(commands.publication("t"), b"a")
        talk.lost("cut")
        with self.assertRaisesRegex(ConnectionLost, "1 published messages .* name"):
            talk.complain()
        log_on(talk)
        self.assertEqual(talk.output(), b"")

    def test_subscriptions_are_placed_again_by_their_names(self) -> None:
        talk = logged_on(Settings())
        feed = follow(talk, "orders")
        unheard = subscription(talk, "t", "/a = 1")
        talk.ask(unheard)
        deletion = talk.ask(commands.deletion("t", "/a = 1", keys=None, like=None))
        query = talk.ask(
            commands.question(
                "t", None, order_by=None, top=None, skip=0, keys=None, select=None, options=""
            )
        )
        said(talk)
        talk.lost("cut")
        self.assertIsInstance(deletion.error, ConnectionLost)
        log_on(talk)
        again = {header["cmd"]: header for header, _ in said(talk)}
        self.assertEqual(list(again), ["sow_and_subscribe", "subscribe", "sow"])
        self.assertEqual(again["sow_and_subscribe"]["sub_id"], feed.name)
        self.assertEqual(again["sow_and_subscribe"]["query_id"], feed.name)
        self.assertNotEqual(again["sow_and_subscribe"]["cmd_id"], feed.name)
        self.assertEqual(again["sow"]["query_id"], again["sow"]["cmd_id"])
        self.assertEqual(events(feed), [Resumed("cut")])
        assert unheard.feed is not None
        self.assertEqual(events(unheard.feed), [])
        number = again["sow_and_subscribe"]["cmd_id"]
        talk.receive(ack(number, status="failure", reason="not entitled"), 0.0)
        with self.assertRaisesRegex(Refused, "not entitled"):
            feed.take()
        talk.receive(ack(again["sow"]["cmd_id"], "completed"), 0.0)
        self.assertTrue(query.is_done)

    def test_silence_ends_a_connection(self) -> None:
        talk = logged_on(Settings(heartbeat=2))
        self.assertEqual(said(talk)[0][0]["opts"], "start,2")
        talk.tick(1.0)
        self.assertEqual(said(talk)[0][0]["opts"], "beat")
        talk.tick(2.0)
        self.assertEqual(talk.output(), b"")
        talk.receive(wire.write_frame({"cmd": "heartbeat"}), 5.0)
        talk.tick(11.0)
        with self.assertRaisesRegex(ConnectionLost, "no sign of life"):
            talk.tick(11.1)

    def test_the_end_reaches_everybody(self) -> None:
        talk = logged_on(Settings())
        feed = follow(talk, "t")
        task = talk.ask(commands.flush())
        talk.fail(LanecastError("over"))
        self.assertTrue(task.is_done and feed.has_ended)
        with self.assertRaisesRegex(LanecastError, "over"):
            feed.take()


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
        with self.assertRaisesRegex(ValueError, "which records"):
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
