"""The protocol of a client as a state machine, without sockets, threads or clocks.

The blocking client and the asyncio client share it: they pass in received bytes and send its
output. Time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, Optional, Sequence

from . import wire
from .errors import ConnectionLost, LanecastError, NameTaken, OtherVersion, Overrun
from .errors import ProtocolError, Refused
from .events import Current, Event, Message, OutOfFocus, Record, Resumed
from .settings import Settings

VERSION = "0.1.0"
MISSED_MAX = 3
"""Missed heartbeats after which a connection counts as lost."""
EVENT_BYTES = 256
"""Approximate memory of an event without its body."""


def _ignore() -> None:
    """The default wake-up: none."""


class Request:
    """A command and its acknowledgement, pending or complete."""

    def __init__(
        self,
        what: str,
        header: Mapping[str, wire.Value],
        body: bytes = b"",
        *,
        until: str = "processed",
        is_repeatable: bool = True,
        queue: Optional[EventQueue] = None,
    ) -> None:
        self.what = what
        self.header = header
        self.body = body
        self.until = until
        self.is_repeatable = is_repeatable
        self.queue = queue
        self.is_sent = False
        """Whether the server may have the command."""
        self.is_done = False
        self.error: Optional[LanecastError] = None
        self.records: List[Record] = []
        self.record_bytes = 0
        self.answer: Mapping[str, str] = {}
        self.wake: Callable[[], None] = _ignore

    def end(self, error: Optional[LanecastError] = None) -> None:
        """Completes the request, with an error if it failed."""
        self.is_done = True
        self.error = error
        self.wake()

    def add(self, record: Record) -> None:
        """Adds a record to the answer."""
        self.records.append(record)
        self.record_bytes += _bytes(record)

    def restart(self) -> None:
        """Drops the part of an answer that came with a lost connection."""
        self.records.clear()
        self.record_bytes = 0


class EventQueue:
    """Events of a subscription that the application has not read yet."""

    def __init__(self, what: str, name: str, header: Mapping[str, wire.Value]) -> None:
        self.what = what
        self.name = name
        self.header = header
        self.events: Deque[Event] = deque()
        self.waiting_bytes = 0
        self.error: Optional[LanecastError] = None
        self.has_ended = False
        self.has_delivered = False
        """Whether the application may have seen an event or an acknowledgement."""
        self.wake: Callable[[], None] = _ignore

    def take(self) -> Optional[Event]:
        """The next event; raises the error that ended the subscription."""
        if self.events:
            event = self.events.popleft()
            self.waiting_bytes -= _bytes(event)
            return event
        if self.error is not None:
            raise self.error
        return None

    def put(self, event: Event) -> None:
        self.has_delivered = True
        self.events.append(event)
        self.waiting_bytes += _bytes(event)
        self.wake()

    def end(self, error: Optional[LanecastError] = None) -> None:
        self.has_ended = True
        self.error = error
        self.wake()


def _bytes(event: Event) -> int:
    if isinstance(event, (Record, Message, OutOfFocus)):
        return EVENT_BYTES + len(event.body)
    return EVENT_BYTES


def _too_long(limit: int) -> str:
    return (
        f"the answer has more than {limit} bytes: ask for fewer records, by a filter, top and "
        "skip, or raise queue_bytes_max"
    )


class _Unacknowledged:
    """A published message without an acknowledgement yet."""

    __slots__ = ("frame", "number", "sequence")

    def __init__(self, number: int, sequence: int, frame: bytes) -> None:
        self.number = number
        """Its number among the client's messages, from 1 on, by which errors name it."""
        self.sequence = sequence
        self.frame = frame


class Session:
    """A client's state across its connections."""

    def __init__(self, settings: Settings, sequence: int = 0) -> None:
        """A session whose messages have sequence numbers above `sequence`, if it has a name.

        A client passes the time: its numbers are then above all that any server has of an
        earlier client of its name.
        """
        self.settings = settings
        self.is_logged_on = False
        self.failure: Optional[LanecastError] = None
        """The error that ended the session for good."""
        self._frames = wire.Frames()
        self._out = bytearray()
        self._last = 0
        self._published = 0
        self._sequence = sequence
        self._has_been_connected = False
        self.duplicates = 0
        """Messages that the server acknowledged as duplicates."""
        self._requests: Dict[str, Request] = {}
        self._queues: Dict[str, EventQueue] = {}
        self._unacknowledged: Dict[str, _Unacknowledged] = {}
        self._refusal: Optional[LanecastError] = None
        self._logon: Optional[Request] = None
        self._why = ""
        self._last_receive = 0.0
        self._next_heartbeat = 0.0

    # The connection.

    def connected(self, now: float) -> Request:
        """Starts the logon on a new connection; the request completes with the server's answer."""
        settings = self.settings
        self._frames.clear()
        self._out.clear()
        self._last_receive = self._next_heartbeat = now
        header: Dict[str, wire.Value] = {"cmd": "logon", "ack_type": "processed"}
        given = {"client_name": settings.name, "user_id": settings.user}
        given["password"] = settings.password
        header.update({name: value for name, value in given.items() if value})
        header.update(version=VERSION, message_type=settings.message_type)
        header["protocol_version"] = wire.PROTOCOL_VERSION
        self._logon = Request("cannot log on", header, is_repeatable=False)
        self._write(self._logon)
        return self._logon

    def lost(self, why: str) -> None:
        """Records the end of the connection; requests that must not be repeated fail."""
        self.is_logged_on = False
        self._why = why
        for key, request in list(self._requests.items()):
            if request.is_sent and not request.is_repeatable:
                del self._requests[key]
                request.end(ConnectionLost(f"{request.what}: {why}; it may have been done"))
        if self._unacknowledged and not self.settings.name:
            count = len(self._unacknowledged)
            self._unacknowledged.clear()
            self._refuse(
                ConnectionLost(
                    f"{why}: {count} published messages had not been acknowledged and may be "
                    "lost; a client with a name sends them again"
                )
            )

    def fail(self, error: LanecastError) -> None:
        """Ends the session for good."""
        self.failure = self.failure or error
        self.is_logged_on = False
        requests, queues = list(self._requests.values()), list(self._queues.values())
        self._requests.clear()
        self._queues.clear()
        for request in requests:
            request.end(error)
        for queue in queues:
            queue.end(error)

    def output(self) -> bytes:
        """Takes the bytes to send."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def receive(self, data: bytes, now: float) -> None:
        """Processes received bytes. A `ProtocolError` must end the connection."""
        self._last_receive = now
        self._frames.add(data)
        while True:
            payload = self._frames.next()
            if payload is None:
                return
            if payload:
                self._dispatch(payload)

    def tick(self, now: float) -> None:
        """Sends a heartbeat if one is due; raises `ConnectionLost` after too many missed ones.

        Call it several times in each interval, and after `receive`.
        """
        every = self.settings.heartbeat
        if every is None or not self.is_logged_on:
            return
        if now - self._last_receive > every * MISSED_MAX:
            silence = now - self._last_receive
            raise ConnectionLost(f"no heartbeat from the server for {silence:.1f} s")
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + every
            self._out += wire.write_frame({"cmd": "heartbeat", "opts": "beat"})

    # Commands.

    @property
    def has_room(self) -> bool:
        """Whether another message may be published."""
        return len(self._unacknowledged) < self.settings.unacknowledged_max

    @property
    def is_acknowledged(self) -> bool:
        """Whether all published messages are acknowledged."""
        return not self._unacknowledged

    def raise_refusal(self) -> None:
        """Raises the refusal of an earlier message, once."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def publish(self, header: Mapping[str, wire.Value], body: bytes) -> None:
        """Publishes a message."""
        self._last += 1
        key = str(self._last)
        acknowledge = self.settings.acknowledge
        fields: Dict[str, wire.Value] = {"cmd": header["cmd"], "cmd_id": key, **header}
        if self.settings.name:
            self._sequence += 1
            fields["seq"] = self._sequence
        fields["ack_type"] = acknowledge
        frame = wire.write_frame(fields, body)
        kept = frame if self.settings.name else b""
        self._published += 1
        self._unacknowledged[key] = _Unacknowledged(self._published, self._sequence, kept)
        self._out += frame

    def ask(self, request: Request) -> Request:
        """Sends a command, now or when there is a connection."""
        if request.queue is not None:
            self._queues[request.queue.name] = request.queue
        self._write(request)
        return request

    def new_name(self) -> str:
        """A name for a subscription, which no command and no other subscription has."""
        self._last += 1
        return str(self._last)

    def abandon(self, request: Request) -> None:
        """Drops a request after a timeout. Ends the subscription that it would have placed."""
        requests = self._requests.items()
        self._requests = {key: other for key, other in requests if other is not request}
        if request.queue is not None and not request.is_done:
            self.unsubscribe(request.queue)

    def unsubscribe(self, queue: EventQueue) -> None:
        """Ends a subscription. Events received before remain readable."""
        if self._queues.pop(queue.name, None) is None:
            return
        queue.end()
        if self.is_logged_on:
            self._last += 1
            fields = {"cmd": "unsubscribe", "cmd_id": str(self._last), "sub_id": queue.name}
            self._out += wire.write_frame(fields)

    def _write(self, request: Request) -> None:
        self._last += 1
        key = str(self._last)
        self._requests[key] = request
        fields: Dict[str, wire.Value] = {"cmd": request.header["cmd"], "cmd_id": key}
        fields.update(request.header)
        if request.header["cmd"] == "sow":
            fields["query_id"] = key
        if self.is_logged_on or request is self._logon:
            self._out += wire.write_frame(fields, request.body)
            request.is_sent = True

    def _resume(self, sequence: int) -> None:
        """Continues after the logon where the last connection ended."""
        self.is_logged_on = self._has_been_connected = True
        every = self.settings.heartbeat
        if every is not None:
            start = {"cmd": "heartbeat", "opts": f"start,{every}", "ack_type": "processed"}
            self._write(Request("cannot start heartbeats", start, is_repeatable=False))
        self._sequence = max(self._sequence, sequence)
        if self.settings.acknowledge == "processed":
            pending = self._unacknowledged.items()
            covered = [key for key, sent in pending if sent.sequence <= sequence]
            for key in covered:
                del self._unacknowledged[key]
        for sent in self._unacknowledged.values():
            self._out += sent.frame
        waiting = self._requests.items()
        requests = [one for _, one in waiting if one.is_repeatable or not one.is_sent]
        self._requests = {key: one for key, one in waiting if one.is_sent and not one.is_repeatable}
        asked = {request.queue.name: request for request in requests if request.queue is not None}
        for queue in self._queues.values():
            if queue.has_delivered:
                queue.put(Resumed(self._why))
            request = asked.get(queue.name) or Request(queue.what, queue.header, queue=queue)
            self._write(request)
        for request in requests:
            if request.queue is None:
                request.restart()
                self._write(request)

    # Commands from the server.

    def _dispatch(self, payload: bytes) -> None:
        header, at = wire.read_header(payload)
        command = header.get("cmd")
        if command in ("p", "publish"):
            self._message(header, payload[at:])
        elif command == "ack":
            self._acknowledged(header)
        elif command == "sow":
            self._records(header, payload[at:])
        elif command == "oof":
            self._out_of_focus(header, payload[at:])
        elif command == "group_end":
            queue = self._queues.get(header.get("query_id", ""))
            if queue is not None:
                self._deliver(queue, Current())
        elif command not in ("group_begin", "heartbeat"):
            raise ProtocolError(f"{command!r} is no command of a server")

    def _subscribers(self, header: Mapping[str, str]) -> Sequence[EventQueue]:
        listed = header.get("sids") or header.get("sub_id", "")
        queues = (self._queues.get(name) for name in wire.names(listed))
        return [queue for queue in queues if queue is not None]

    def _message(self, header: Mapping[str, str], body: bytes) -> None:
        subscriptions = tuple(wire.names(header.get("sids") or header.get("sub_id", "")))
        topic, key = header.get("topic", ""), header.get("sow_key")
        message = Message(topic, body, key, subscriptions, header.get("correlation_id"))
        for queue in self._subscribers(header):
            self._deliver(queue, message)

    def _out_of_focus(self, header: Mapping[str, str], body: bytes) -> None:
        subscriptions = tuple(wire.names(header.get("sids") or header.get("sub_id", "")))
        topic, key = header.get("topic", ""), header.get("sow_key")
        event = OutOfFocus(topic, body, key, subscriptions, header.get("reason", ""))
        for queue in self._subscribers(header):
            self._deliver(queue, event)

    def _records(self, header: Mapping[str, str], body: bytes) -> None:
        query, topic = header.get("query_id", ""), header.get("topic", "")
        queue, request = self._queues.get(query), self._requests.get(query)
        limit = self.settings.queue_bytes_max
        for record, content in wire.read_records(body):
            found = Record(topic, content, record.get("sow_key", ""))
            if queue is not None:
                self._deliver(queue, found)
            elif request is not None and not request.is_done:
                request.add(found)
                if request.record_bytes > limit:
                    # The call takes the whole answer, so reading more slowly would not help. The
                    # server sends the rest, too.
                    del self._requests[query]
                    request.restart()
                    request.end(Overrun(f"{request.what}: {_too_long(limit)}"))

    def _deliver(self, queue: EventQueue, event: Event) -> None:
        if queue.has_ended:
            return
        if queue.waiting_bytes > self.settings.queue_bytes_max:
            self.unsubscribe(queue)
            limit = self.settings.queue_bytes_max
            queue.end(Overrun(f"more than {limit} unread bytes: the subscription has ended"))
            return
        queue.put(event)

    def _acknowledged(self, header: Mapping[str, str]) -> None:
        ack, key = header.get("ack_type", ""), header.get("cmd_id", "")
        has_failed = header.get("status") != "success"
        reason = header.get("reason", "no reason")
        request = self._requests.get(key)
        if request is not None:
            refused = Refused(request.what, reason) if has_failed else None
            self._complete(key, request, header, refused)
        elif key in self._unacknowledged and (has_failed or ack == self.settings.acknowledge):
            number = self._unacknowledged.pop(key).number
            if not has_failed and reason.startswith("duplicate"):
                self.duplicates += 1
            if has_failed:
                self._refuse(Refused(f"cannot publish message {number}", reason))
        elif ack == "persisted" and not key and not has_failed and "seq" in header:
            upto = wire.number(header, "seq")
            pending = self._unacknowledged.items()
            for key in [key for key, sent in pending if 0 < sent.sequence <= upto]:
                del self._unacknowledged[key]
        elif has_failed and ack == "completed" and header.get("query_id", "") in self._queues:
            # The server cannot sort the records that the subscription would begin with.
            queue = self._queues.pop(header["query_id"])
            queue.end(Refused(queue.what, reason))
        elif not key and has_failed and not self.is_logged_on:
            # A TLS server answers so to a client without TLS.
            self.fail(Refused("cannot log on", reason))

    def _complete(
        self, key: str, request: Request, header: Mapping[str, str], refused: Optional[LanecastError]
    ) -> None:
        if refused is None and header.get("ack_type") != request.until:
            return
        # Check the numbers before the request counts as complete.
        sequence = wire.number(header, "seq") if request is self._logon else 0
        wire.number(header, "records_deleted")
        if request is self._logon and refused is None:
            # A server that leaves it out speaks the first version.
            version = wire.number(header, "protocol_version", 1)
            if version != wire.PROTOCOL_VERSION:
                refused = OtherVersion(request.what, version, wire.PROTOCOL_VERSION)
            elif self._has_been_connected and sequence > self._sequence:
                refused = NameTaken(self.settings.name)
        del self._requests[key]
        request.answer = header
        if request.queue is not None:
            request.queue.has_delivered = True
            if refused is not None:
                self._queues.pop(request.queue.name, None)
                request.queue.end(refused)
        if request is self._logon:
            if refused is None:
                self._resume(sequence)
            else:
                self.fail(refused)
        request.end(refused)

    def _refuse(self, error: LanecastError) -> None:
        self._refusal = self._refusal or error
