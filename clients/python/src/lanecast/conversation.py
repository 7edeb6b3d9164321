"""What a client says and hears, without sockets, threads or clocks.

The blocking client and the one for asyncio share it: they hand in what comes and send what is
to be sent. Time is an argument, in seconds by a clock that only goes forward.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, Optional, Sequence

from . import wire
from .errors import ConnectionLost, LanecastError, Overrun, ProtocolError, Refused
from .events import Current, Event, Left, Message, Record, Resumed
from .settings import Settings

VERSION = "0.1.0"
MISSED_MAX = 3
"""So many signs of life may be missing."""
EVENT_BYTES = 256
"""What an event takes beside its body, about."""


def _nobody() -> None:
    """Nobody waits."""


class Task:
    """A command, until it is answered."""

    def __init__(
        self,
        what: str,
        header: Mapping[str, wire.Value],
        body: bytes = b"",
        *,
        until: str = "processed",
        is_repeatable: bool = True,
        feed: Optional[Feed] = None,
    ) -> None:
        self.what = what
        self.header = header
        self.body = body
        self.until = until
        self.is_repeatable = is_repeatable
        self.feed = feed
        self.is_done = False
        self.error: Optional[LanecastError] = None
        self.records: List[Record] = []
        self.answer: Mapping[str, str] = {}
        self.wake: Callable[[], None] = _nobody

    def end(self, error: Optional[LanecastError] = None) -> None:
        """It is answered, or will not be."""
        self.is_done = True
        self.error = error
        self.wake()


class Feed:
    """What has come for a subscription and is not read yet."""

    def __init__(self, what: str, name: str, header: Mapping[str, wire.Value]) -> None:
        self.what = what
        self.name = name
        self.header = header
        self.events: Deque[Event] = deque()
        self.waiting_bytes = 0
        self.error: Optional[LanecastError] = None
        self.has_ended = False
        self.has_begun = False
        """Whether the application may know something of it already."""
        self.wake: Callable[[], None] = _nobody

    def take(self) -> Optional[Event]:
        """The next event; raises why there is none any more, if that is so."""
        if self.events:
            event = self.events.popleft()
            self.waiting_bytes -= _bytes(event)
            return event
        if self.error is not None:
            raise self.error
        return None

    def put(self, event: Event) -> None:
        self.has_begun = True
        self.events.append(event)
        self.waiting_bytes += _bytes(event)
        self.wake()

    def end(self, error: Optional[LanecastError] = None) -> None:
        self.has_ended = True
        self.error = error
        self.wake()


def _bytes(event: Event) -> int:
    if isinstance(event, (Record, Message, Left)):
        return EVENT_BYTES + len(event.body)
    return EVENT_BYTES


class _Sent:
    """A published message that is not acknowledged yet."""

    __slots__ = ("frame", "sequence")

    def __init__(self, sequence: int, frame: bytes) -> None:
        self.sequence = sequence
        self.frame = frame


class Conversation:
    """One client's side of it, across its connections."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_logged_on = False
        self.failure: Optional[LanecastError] = None
        """Why there will be no more connections."""
        self._frames = wire.Frames()
        self._out = bytearray()
        self._last = 0
        self._sequence = 0
        self.duplicates = 0
        """Messages of which the server said that their numbers were had before."""
        self._tasks: Dict[str, Task] = {}
        self._feeds: Dict[str, Feed] = {}
        self._sent: Dict[str, _Sent] = {}
        self._refusal: Optional[LanecastError] = None
        self._logon: Optional[Task] = None
        self._why = ""
        self._heard = 0.0
        self._beat = 0.0

    # The connection.

    def connected(self, now: float) -> Task:
        """A connection is there; the task ends when the server has let the client in."""
        settings = self.settings
        self._frames.clear()
        self._out.clear()
        self._heard = self._beat = now
        header: Dict[str, wire.Value] = {"cmd": "logon", "ack_type": "processed"}
        given = {"client_name": settings.name, "user_id": settings.user}
        given["password"] = settings.password
        header.update({name: value for name, value in given.items() if value})
        header.update(version=VERSION, message_type=settings.message_type)
        self._logon = Task("cannot log on", header, is_repeatable=False)
        self._write(self._logon)
        return self._logon

    def lost(self, why: str) -> None:
        """The connection has ended."""
        self.is_logged_on = False
        self._why = why
        for key, task in list(self._tasks.items()):
            if not task.is_repeatable:
                del self._tasks[key]
                task.end(ConnectionLost(f"{task.what}: {why}; it may have been done"))
        if self._sent and not self.settings.name:
            count = len(self._sent)
            self._sent.clear()
            self._refuse(
                ConnectionLost(
                    f"{why}: {count} published messages had not been acknowledged and may be "
                    "lost; a client with a name sends them again"
                )
            )

    def fail(self, error: LanecastError) -> None:
        """There will be no more connections."""
        self.failure = self.failure or error
        self.is_logged_on = False
        tasks, feeds = list(self._tasks.values()), list(self._feeds.values())
        self._tasks.clear()
        self._feeds.clear()
        for task in tasks:
            task.end(error)
        for feed in feeds:
            feed.end(error)

    def output(self) -> bytes:
        """What is to be sent now."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def receive(self, data: bytes, now: float) -> None:
        """Something has come. A `ProtocolError` ends the connection."""
        self._heard = now
        self._frames.add(data)
        while True:
            payload = self._frames.next()
            if payload is None:
                return
            if payload:
                self._hear(payload)

    def tick(self, now: float) -> None:
        """Sends a sign of life if it is time; raises `ConnectionLost` if too many are missing.

        To be called some times in each interval, and after what has come was handed in.
        """
        every = self.settings.heartbeat
        if every is None or not self.is_logged_on:
            return
        if now - self._heard > every * MISSED_MAX:
            raise ConnectionLost(f"the server gave no sign of life for {now - self._heard:.1f} s")
        if now >= self._beat:
            self._beat = now + every
            self._out += wire.write_frame({"cmd": "heartbeat", "opts": "beat"})

    # Commands.

    @property
    def has_room(self) -> bool:
        """Whether another message may be published."""
        return len(self._sent) < self.settings.unacknowledged_max

    @property
    def is_caught_up(self) -> bool:
        """Whether all published messages are acknowledged."""
        return not self._sent

    def complain(self) -> None:
        """Raises why an earlier message was not taken, if one was not. Says it once."""
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
        self._sent[key] = _Sent(self._sequence, frame if self.settings.name else b"")
        self._out += frame

    def ask(self, task: Task) -> Task:
        """Sends a command, now or when there is a connection."""
        if task.feed is not None:
            self._feeds[task.feed.name] = task.feed
        self._write(task)
        return task

    def new_name(self) -> str:
        """A name for a subscription: it is the number of the command that makes it."""
        return str(self._last + 1)

    def forget(self, task: Task) -> None:
        """Nobody waits for it any more. A subscription that it would have made ends."""
        self._tasks = {key: other for key, other in self._tasks.items() if other is not task}
        if task.feed is not None and not task.is_done:
            self.unsubscribe(task.feed)

    def unsubscribe(self, feed: Feed) -> None:
        """Ends a subscription. What has come may still be read."""
        if self._feeds.pop(feed.name, None) is None:
            return
        feed.end()
        if self.is_logged_on:
            self._last += 1
            fields = {"cmd": "unsubscribe", "cmd_id": str(self._last), "sub_id": feed.name}
            self._out += wire.write_frame(fields)

    def _write(self, task: Task) -> None:
        self._last += 1
        key = str(self._last)
        self._tasks[key] = task
        fields: Dict[str, wire.Value] = {"cmd": task.header["cmd"], "cmd_id": key}
        fields.update(task.header)
        if task.header["cmd"] == "sow":
            fields["query_id"] = key
        if self.is_logged_on or task is self._logon:
            self._out += wire.write_frame(fields, task.body)

    def _resume(self, sequence: int) -> None:
        """The server has let the client in: goes on where the last connection ended."""
        self.is_logged_on = True
        every = self.settings.heartbeat
        if every is not None:
            start = {"cmd": "heartbeat", "opts": f"start,{every}", "ack_type": "processed"}
            self._write(Task("cannot start signs of life", start, is_repeatable=False))
        self._sequence = max(self._sequence, sequence)
        if self.settings.acknowledge == "processed":
            had = [key for key, sent in self._sent.items() if sent.sequence <= sequence]
            for key in had:
                del self._sent[key]
        for sent in self._sent.values():
            self._out += sent.frame
        tasks = [task for task in self._tasks.values() if task.is_repeatable]
        self._tasks = {key: one for key, one in self._tasks.items() if not one.is_repeatable}
        asked = {task.feed.name: task for task in tasks if task.feed is not None}
        for feed in self._feeds.values():
            if feed.has_begun:
                feed.put(Resumed(self._why))
            task = asked.get(feed.name) or Task(feed.what, feed.header, feed=feed)
            self._write(task)
        for task in tasks:
            if task.feed is None:
                task.records.clear()
                self._write(task)

    # What is heard.

    def _hear(self, payload: bytes) -> None:
        header, at = wire.read_header(payload)
        command = header.get("cmd")
        if command in ("p", "publish"):
            self._message(header, payload[at:])
        elif command == "ack":
            self._acknowledged(header)
        elif command == "sow":
            self._records(header, payload[at:])
        elif command == "oof":
            self._left(header, payload[at:])
        elif command == "group_end":
            feed = self._feeds.get(header.get("query_id", ""))
            if feed is not None:
                self._tell(feed, Current())
        elif command not in ("group_begin", "heartbeat"):
            raise ProtocolError(f"{command!r} is no command of a server")

    def _wanting(self, header: Mapping[str, str]) -> Sequence[Feed]:
        listed = header.get("sids") or header.get("sub_id", "")
        feeds = (self._feeds.get(name) for name in wire.names(listed))
        return [feed for feed in feeds if feed is not None]

    def _message(self, header: Mapping[str, str], body: bytes) -> None:
        subscriptions = tuple(wire.names(header.get("sids") or header.get("sub_id", "")))
        topic, key = header.get("topic", ""), header.get("sow_key")
        message = Message(topic, body, key, subscriptions, header.get("correlation_id"))
        for feed in self._wanting(header):
            self._tell(feed, message)

    def _left(self, header: Mapping[str, str], body: bytes) -> None:
        subscriptions = tuple(wire.names(header.get("sids") or header.get("sub_id", "")))
        topic, key = header.get("topic", ""), header.get("sow_key")
        left = Left(topic, body, key, subscriptions, header.get("reason", ""))
        for feed in self._wanting(header):
            self._tell(feed, left)

    def _records(self, header: Mapping[str, str], body: bytes) -> None:
        query, topic = header.get("query_id", ""), header.get("topic", "")
        feed, task = self._feeds.get(query), self._tasks.get(query)
        for record, content in wire.read_records(body):
            found = Record(topic, content, record.get("sow_key", ""))
            if feed is not None:
                self._tell(feed, found)
            elif task is not None:
                task.records.append(found)

    def _tell(self, feed: Feed, event: Event) -> None:
        if feed.has_ended:
            return
        if feed.waiting_bytes > self.settings.queue_bytes_max:
            self.unsubscribe(feed)
            limit = self.settings.queue_bytes_max
            feed.end(Overrun(f"more than {limit} bytes wait to be read: it has been ended"))
            return
        feed.put(event)

    def _acknowledged(self, header: Mapping[str, str]) -> None:
        ack, key = header.get("ack_type", ""), header.get("cmd_id", "")
        has_failed = header.get("status") != "success"
        reason = header.get("reason", "no reason")
        task = self._tasks.get(key)
        if task is not None:
            self._answered(key, task, header, Refused(task.what, reason) if has_failed else None)
        elif key in self._sent and (has_failed or ack == self.settings.acknowledge):
            del self._sent[key]
            if not has_failed and reason.startswith("duplicate"):
                self.duplicates += 1
            if has_failed:
                self._refuse(Refused(f"cannot publish (command {key})", reason))
        elif ack == "persisted" and not key and not has_failed and "seq" in header:
            upto = wire.number(header, "seq")
            for key in [key for key, sent in self._sent.items() if 0 < sent.sequence <= upto]:
                del self._sent[key]
        elif not key and has_failed and not self.is_logged_on:
            # So speaks a server that encrypts to one who does not.
            self.fail(Refused("cannot log on", reason))

    def _answered(
        self, key: str, task: Task, header: Mapping[str, str], refused: Optional[Refused]
    ) -> None:
        if refused is None and header.get("ack_type") != task.until:
            return
        # Only read if it makes sense, before the task is taken for done.
        sequence = wire.number(header, "seq") if task is self._logon else 0
        wire.number(header, "records_deleted")
        del self._tasks[key]
        task.answer = header
        if task.feed is not None:
            task.feed.has_begun = True
            if refused is not None:
                self._feeds.pop(task.feed.name, None)
                task.feed.end(refused)
        if task is self._logon:
            if refused is None:
                self._resume(sequence)
            else:
                self.fail(refused)
        task.end(refused)

    def _refuse(self, error: LanecastError) -> None:
        self._refusal = self._refusal or error
