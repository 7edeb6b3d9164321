"""The blocking client: all work happens on the calling thread."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Callable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from . import commands
from .commands import Body
from .session import Session, EventQueue, Request
from .errors import Closed, ConnectError, ConnectionLost, LanecastError, NoAnswer, ProtocolError
from .events import Event, Record
from .settings import Address, Backoff, Settings, addresses

READ_BYTES = 256 << 10
SHORTEST_WAIT = 1e-4
"""The shortest socket timeout in seconds: 0 would make the socket non-blocking."""


class Subscription:
    """A subscription: iterate over its events, or call `next`."""

    def __init__(self, client: Client, queue: EventQueue) -> None:
        self._client = client
        self._queue = queue

    @property
    def name(self) -> str:
        """The subscription's name, as in `Message.subscriptions`."""
        return self._queue.name

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event, or None after `timeout` seconds or the end of the subscription."""
        return self._client._next(self._queue, timeout)

    def unsubscribe(self) -> None:
        """Ends the subscription. Events received before remain readable."""
        self._client._unsubscribe(self._queue)

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

    It reads the connection whenever a call waits for something. After a lost connection it
    reconnects, sends unacknowledged messages again and places its subscriptions anew; each then
    gets a `Resumed` event.
    """

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        self._servers = servers
        self._settings = settings
        self._session = Session(settings)
        self._backoff = Backoff(settings.delay_max)
        self._socket: Optional[socket.socket] = None
        self._next_server = 0
        self._not_before = 0.0

    @classmethod
    def connect(
        cls, servers: Union[str, Sequence[str]], settings: Optional[Settings] = None
    ) -> Client:
        """Connects to the first reachable server and logs on."""
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
        """Publishes a message. A refusal is raised by a later call, by `flush` at the latest.
        `correlation` is passed on unread; `key` and `expiration` (in seconds) are for topics that
        store records."""
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
        """Publishes the changed fields of a record and its key fields, otherwise like `publish`."""
        fields = commands.publication(
            topic, is_delta=True, correlation=correlation, key=key, expiration=expiration
        )
        self._publish(fields, body)

    @property
    def duplicates(self) -> int:
        """Number of messages that the server acknowledged as duplicates."""
        return self._session.duplicates

    def flush(self) -> None:
        """Waits until the server has executed all requests."""
        self._ask(commands.flush())
        self._wait(lambda: self._session.is_acknowledged, "cannot publish")
        self._session.raise_refusal()

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
        """Subscribes to the messages of a topic, or of all topics that match a pattern such as
        `^orders`, that match the filter. `delta` delivers only changed fields and key fields, for
        topics that store records; `left`, `conflation` and `select` are as in
        `query_and_subscribe`."""
        request = commands.subscription(
            self._session,
            topic,
            filter,
            send_oof=left,
            conflation=conflation,
            select=select,
            is_delta=delta,
            options=options,
        )
        return self._subscribe(request)

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
        """Delivers the stored records, each as a `Record`, then `Current`, then changes, without a
        gap. `left` also reports records that no longer match. `conflation` (`100ms`) delivers a
        record at most once in that time. `delta` reduces changes to changed fields and key fields,
        `select` (`-/,+/price`) to the given fields."""
        request = commands.query_and_subscription(
            self._session,
            topic,
            filter,
            order_by=order_by,
            top=top,
            send_oof=left,
            conflation=conflation,
            select=select,
            is_delta=delta,
            options=options,
        )
        return self._subscribe(request)

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
        """The stored records of a topic, ordered by fields such as `/price DESC, /id`; `select`
        (`-/,+/price`) restricts their fields."""
        request = commands.query(
            topic,
            filter,
            order_by=order_by,
            top=top,
            skip=skip,
            keys=keys,
            select=select,
            options=options,
        )
        return self._ask(request).records

    def delete(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        keys: Optional[Sequence[str]] = None,
        like: Optional[Body] = None,
    ) -> int:
        """Deletes records by filter, by keys, or by the key fields of the message `like`; returns
        their number."""
        return commands.deleted(self._ask(commands.deletion(topic, filter, keys=keys, like=like)))

    def close(self) -> None:
        """Closes the connection. Unacknowledged messages may be lost."""
        self._session.fail(Closed("the client has been closed"))
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
            if kind is None and self._session.failure is None:
                self.flush()
        finally:
            self.close()

    # Requests.

    def _publish(self, fields: commands.Header, body: Body) -> None:
        content = commands.body_bytes(body)
        session = self._session
        self._wait(lambda: session.is_logged_on and session.has_room, "cannot publish")
        session.raise_refusal()
        session.publish(fields, content)
        self._with_link(self._send)

    def _ask(self, request: Request) -> Request:
        self._session.ask(request)
        try:
            self._wait(lambda: request.is_done, request.what)
        except BaseException:
            self._session.abandon(request)
            raise
        if request.error is not None:
            raise request.error
        return request

    def _subscribe(self, request: Request) -> Subscription:
        self._ask(request)
        assert request.queue is not None
        return Subscription(self, request.queue)

    def _next(self, queue: EventQueue, timeout: Optional[float]) -> Optional[Event]:
        until = None if timeout is None else time.monotonic() + timeout
        event = queue.take()
        while event is None and not queue.has_ended:
            self._pump(until)
            event = queue.take()
            if until is not None and time.monotonic() > until:
                break
        return event

    def _unsubscribe(self, queue: EventQueue) -> None:
        self._session.unsubscribe(queue)
        self._with_link(self._send)

    def _wait(self, is_over: Callable[[], bool], what: str) -> None:
        """Sends and receives until `is_over`, for at most the timeout of an answer."""
        until = time.monotonic() + self._settings.timeout
        while not is_over():
            if time.monotonic() > until:
                raise NoAnswer(what, self._settings.timeout)
            self._pump(until)

    # The connection.

    def _pump(self, until: Optional[float]) -> None:
        """Makes one step: connects, or sends pending bytes and reads once."""
        if self._session.failure is not None:
            raise self._session.failure
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
        """Runs `work` with the connection, if there is one, and handles its loss."""
        if self._socket is None:
            return
        try:
            work(self._socket)
        except ProtocolError as error:
            self._fail(error)
            raise
        except (OSError, ConnectionLost) as error:
            why = str(error) if isinstance(error, ConnectionLost) else f"it broke: {error}"
            self._disconnect(f"the connection has ended: {why}")
            self._backoff.lost(time.monotonic())
            self._not_before = time.monotonic() + self._backoff.delay()
            if not self._settings.reconnect:
                self._fail(ConnectionLost(f"the connection has ended: {why}"))

    def _connect(self, limit: float) -> None:
        """Connects to the next server and logs on."""
        address = self._servers[self._next_server % len(self._servers)]
        self._next_server += 1
        self._socket = link = self._dial(address, limit)
        logon = self._session.connected(time.monotonic())
        try:
            while not logon.is_done:
                if time.monotonic() >= limit:
                    raise NoAnswer(f"cannot log on to {address}", self._settings.timeout)
                self._step(link, limit)
        except ProtocolError as error:
            self._fail(error)
            raise
        except (OSError, ConnectionLost, NoAnswer) as error:
            self._disconnect(f"cannot log on to {address}: {error}")
            if isinstance(error, NoAnswer):
                raise
            raise ConnectionLost(f"cannot log on to {address}: {error}") from error
        if logon.error is not None:
            self._fail(logon.error)
            raise logon.error
        self._backoff.connected(time.monotonic())
        self._report_state("connected", str(address))

    def _dial(self, address: Address, limit: float) -> socket.socket:
        wait = max(SHORTEST_WAIT, limit - time.monotonic())
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
        """Sends pending bytes and reads once, waiting until `until` at most."""
        self._send(link)
        every = self._settings.heartbeat
        waits = [] if until is None else [until - time.monotonic()]
        if every is not None:
            waits.append(every / 2)
        link.settimeout(max(SHORTEST_WAIT, min(waits)) if waits else None)
        try:
            data = link.recv(READ_BYTES)
        except socket.timeout:
            pass
        else:
            if not data:
                raise ConnectionLost("the server has closed it")
            self._session.receive(data, time.monotonic())
        self._session.tick(time.monotonic())
        self._send(link)

    def _send(self, link: socket.socket) -> None:
        data = self._session.output()
        if data:
            link.settimeout(self._settings.timeout)
            try:
                link.sendall(data)
            except OSError:
                raise
            except BaseException:
                # After Ctrl-C, for instance, part of a frame may be sent: the stream is unusable.
                self._disconnect("sending was interrupted")
                raise

    def _disconnect(self, why: str) -> None:
        self._drop()
        self._session.lost(why)
        self._report_state("waiting", why)

    def _fail(self, error: LanecastError) -> None:
        self._drop()
        self._session.fail(error)
        self._report_state("failed", str(error))

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _report_state(self, state: str, why: str) -> None:
        if self._settings.on_state is not None:
            self._settings.on_state(state, why)
