"""The blocking client: everything happens on the thread that calls it."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Callable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from . import commands
from .commands import Body
from .conversation import Conversation, Feed, Task
from .errors import Closed, ConnectError, ConnectionLost, LanecastError, NoAnswer, ProtocolError
from .events import Event, Record
from .settings import Address, Backoff, Settings, addresses

READ_BYTES = 256 << 10
MOMENT = 1e-4
"""The shortest wait: none at all would be another kind of socket."""


class Subscription:
    """What comes for one subscription: iterate over it, or ask for the `next` event."""

    def __init__(self, client: Client, feed: Feed) -> None:
        self._client = client
        self._feed = feed

    @property
    def name(self) -> str:
        """Its name, as in `Message.subscriptions`."""
        return self._feed.name

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event. None if none comes within `timeout` seconds, or it has ended."""
        return self._client._next(self._feed, timeout)

    def unsubscribe(self) -> None:
        """Ends it. What has come may still be read."""
        self._client._unsubscribe(self._feed)

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self.next()
            if event is None:
                return
            yield event

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.unsubscribe()


class Client:
    """A client of a content server, for one thread at a time.

    It reads what has come whenever it is called and waits for something. If its connection
    breaks, it connects again, sends what was not acknowledged, and places its subscriptions;
    each then gets an event `Resumed`.
    """

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        self._servers = servers
        self._settings = settings
        self._conversation = Conversation(settings)
        self._backoff = Backoff(settings.delay_max)
        self._socket: Optional[socket.socket] = None
        self._turn = 0
        self._not_before = 0.0

    @classmethod
    def connect(
        cls, servers: Union[str, Sequence[str]], settings: Optional[Settings] = None
    ) -> Client:
        """Connects to the first of the servers that can be reached, and logs on."""
        client = cls(addresses(servers), settings or Settings())
        tried: List[str] = []
        for _ in client._servers:
            try:
                client._connect(time.monotonic() + client._settings.timeout)
                return client
            except (ConnectError, ConnectionLost, NoAnswer) as error:
                tried.append(str(error))
            except BaseException:
                client._drop()
                raise
        raise ConnectError("; ".join(tried))

    def publish(
        self,
        topic: str,
        body: Body,
        *,
        correlation: Optional[str] = None,
        key: Optional[str] = None,
        expiration: Optional[int] = None,
    ) -> None:
        """Publishes a message. Whether the server took it shows at a later call, of `flush` at
        the latest. `correlation` is handed on unread; `key` and `expiration` (in seconds) are
        for topics that keep records."""
        fields = commands.publication(
            topic, correlation=correlation, key=key, expiration=expiration
        )
        self._publish(fields, body)

    def delta_publish(
        self,
        topic: str,
        body: Body,
        *,
        correlation: Optional[str] = None,
        key: Optional[str] = None,
        expiration: Optional[int] = None,
    ) -> None:
        """Publishes the fields of a record that change, and those that make its key. Apart from
        that it is as `publish`."""
        fields = commands.publication(
            topic, is_delta=True, correlation=correlation, key=key, expiration=expiration
        )
        self._publish(fields, body)

    @property
    def duplicates(self) -> int:
        """How many messages the server did not publish, as it had their numbers before."""
        return self._conversation.duplicates

    def flush(self) -> None:
        """Waits until the server has done all that it was asked to."""
        self._ask(commands.flush())
        self._wait(lambda: self._conversation.is_caught_up, "cannot publish")
        self._conversation.complain()

    def subscribe(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        left: bool = False,
        conflation: Optional[str] = None,
        select: Optional[str] = None,
        delta: bool = False,
        options: str = "",
    ) -> Subscription:
        """Subscribes to a topic, or to all topics that hold a pattern such as `^orders`: to those
        of its messages that the filter lets through. Of a topic whose records are kept, with
        `delta` only the fields that changed come, and those of the key; `left`, `conflation` and
        `select` are as in `query_and_subscribe`."""
        task = commands.subscription(
            self._conversation,
            topic,
            filter,
            tells_left=left,
            conflation=conflation,
            select=select,
            is_delta=delta,
            options=options,
        )
        return self._follow(task)

    def query_and_subscribe(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        order_by: Optional[str] = None,
        top: Optional[int] = None,
        left: bool = True,
        conflation: Optional[str] = None,
        select: Optional[str] = None,
        delta: bool = False,
        options: str = "",
    ) -> Subscription:
        """Subscribes, beginning with the records that are kept: each as a `Record`, then
        `Current`, then changes, without a gap. With `left`, records that are not among them any
        more are told. With `conflation` (`100ms`) each record is told once in that time. With
        `delta`, changes have only the fields that changed, and those of the key. With `select`
        (`-/,+/price`) only these fields come."""
        task = commands.question_and_subscription(
            self._conversation,
            topic,
            filter,
            order_by=order_by,
            top=top,
            tells_left=left,
            conflation=conflation,
            select=select,
            is_delta=delta,
            options=options,
        )
        return self._follow(task)

    def query(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        order_by: Optional[str] = None,
        top: Optional[int] = None,
        skip: int = 0,
        keys: Optional[Sequence[str]] = None,
        select: Optional[str] = None,
        options: str = "",
    ) -> List[Record]:
        """The records that are kept of a topic, ordered by fields such as `/price DESC, /id`; with
        `select` (`-/,+/price`) only these of their fields."""
        task = commands.question(
            topic,
            filter,
            order_by=order_by,
            top=top,
            skip=skip,
            keys=keys,
            select=select,
            options=options,
        )
        return self._ask(task).records

    def delete(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        keys: Optional[Sequence[str]] = None,
        like: Optional[Body] = None,
    ) -> int:
        """Removes the records that meet a filter, have one of the keys, or have the same key
        fields as the message `like`; how many those were."""
        return commands.deleted(self._ask(commands.deletion(topic, filter, keys=keys, like=like)))

    def close(self) -> None:
        """Ends the connection. Messages that are not acknowledged may not have arrived."""
        self._conversation.fail(Closed("the client has been closed"))
        self._drop()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and self._conversation.failure is None:
                self.flush()
        finally:
            self.close()

    # What commands are made of.

    def _publish(self, fields: commands.Header, body: Body) -> None:
        content = commands.body_bytes(body)
        talk = self._conversation
        self._wait(lambda: talk.is_logged_on and talk.has_room, "cannot publish")
        talk.complain()
        talk.publish(fields, content)
        self._with_link(self._send)

    def _ask(self, task: Task) -> Task:
        self._conversation.ask(task)
        try:
            self._wait(lambda: task.is_done, task.what)
        except BaseException:
            self._conversation.forget(task)
            raise
        if task.error is not None:
            raise task.error
        return task

    def _follow(self, task: Task) -> Subscription:
        self._ask(task)
        assert task.feed is not None
        return Subscription(self, task.feed)

    def _next(self, feed: Feed, timeout: Optional[float]) -> Optional[Event]:
        until = None if timeout is None else time.monotonic() + timeout
        event = feed.take()
        while event is None and not feed.has_ended:
            self._pump(until)
            event = feed.take()
            if until is not None and time.monotonic() > until:
                break
        return event

    def _unsubscribe(self, feed: Feed) -> None:
        self._conversation.unsubscribe(feed)
        self._with_link(self._send)

    def _wait(self, is_over: Callable[[], bool], what: str) -> None:
        """Exchanges with the server until it is over, for as long as an answer may take."""
        until = time.monotonic() + self._settings.timeout
        while not is_over():
            if time.monotonic() > until:
                raise NoAnswer(what, self._settings.timeout)
            self._pump(until)

    # The connection.

    def _pump(self, until: Optional[float]) -> None:
        """Gets on by one step: connects, or sends what there is and reads once."""
        if self._conversation.failure is not None:
            raise self._conversation.failure
        if self._socket is not None:
            return self._with_link(lambda link: self._step(link, until))
        now = time.monotonic()
        wait = self._not_before - now
        if wait > 0:
            time.sleep(wait if until is None else max(0.0, min(wait, until - now)))
        limit = time.monotonic() + self._settings.timeout
        limit = limit if until is None else min(limit, until)
        if self._not_before <= time.monotonic() < limit:
            try:
                self._connect(limit)
            except (ConnectError, ConnectionLost, NoAnswer):
                self._not_before = time.monotonic() + self._backoff.delay()

    def _with_link(self, work: Callable[[socket.socket], None]) -> None:
        """Works with the connection, if there is one; notices when it breaks."""
        if self._socket is None:
            return
        try:
            work(self._socket)
        except ProtocolError as error:
            self._end(error)
            raise
        except (OSError, ConnectionLost) as error:
            why = str(error) if isinstance(error, ConnectionLost) else f"it broke: {error}"
            self._lose(f"the connection has ended: {why}")
            self._backoff.lost(time.monotonic())
            self._not_before = time.monotonic() + self._backoff.delay()
            if not self._settings.reconnect:
                self._end(ConnectionLost(f"the connection has ended: {why}"))

    def _connect(self, limit: float) -> None:
        """Connects to the next server, and logs on."""
        address = self._servers[self._turn % len(self._servers)]
        self._turn += 1
        self._socket = link = self._dial(address, limit)
        logon = self._conversation.connected(time.monotonic())
        try:
            while not logon.is_done:
                if time.monotonic() >= limit:
                    raise NoAnswer(f"cannot log on to {address}", self._settings.timeout)
                self._step(link, limit)
        except ProtocolError as error:
            self._end(error)
            raise
        except (OSError, ConnectionLost, NoAnswer) as error:
            self._lose(f"cannot log on to {address}: {error}")
            if isinstance(error, NoAnswer):
                raise
            raise ConnectionLost(f"cannot log on to {address}: {error}") from error
        if logon.error is not None:
            self._end(logon.error)
            raise logon.error
        self._backoff.connected(time.monotonic())
        self._tell("connected", str(address))

    def _dial(self, address: Address, limit: float) -> socket.socket:
        wait = max(MOMENT, limit - time.monotonic())
        try:
            link = socket.create_connection((address.host, address.port), timeout=wait)
            try:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                context = address.context(self._settings)
                if context is None:
                    return link
                return context.wrap_socket(link, server_hostname=address.host)
            except BaseException:
                link.close()
                raise
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"cannot connect to {address}: {error}") from error

    def _step(self, link: socket.socket, until: Optional[float]) -> None:
        """Sends what there is, and reads once, waiting until then at the most."""
        self._send(link)
        every = self._settings.heartbeat
        waits = [] if until is None else [until - time.monotonic()]
        if every is not None:
            waits.append(every / 2)
        link.settimeout(max(MOMENT, min(waits)) if waits else None)
        try:
            data = link.recv(READ_BYTES)
        except socket.timeout:
            pass
        else:
            if not data:
                raise ConnectionLost("the server has closed it")
            self._conversation.receive(data, time.monotonic())
        self._conversation.tick(time.monotonic())
        self._send(link)

    def _send(self, link: socket.socket) -> None:
        data = self._conversation.output()
        if data:
            link.settimeout(self._settings.timeout)
            try:
                link.sendall(data)
            except OSError:
                raise
            except BaseException:
                # Ctrl-C, say: a frame may have gone in part, and nothing can follow it.
                self._lose("sending was interrupted")
                raise

    def _lose(self, why: str) -> None:
        self._drop()
        self._conversation.lost(why)
        self._tell("waiting", why)

    def _end(self, error: LanecastError) -> None:
        self._drop()
        self._conversation.fail(error)
        self._tell("failed", str(error))

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tell(self, state: str, why: str) -> None:
        if self._settings.on_state is not None:
            self._settings.on_state(state, why)
