"""The blocking client: all work happens on the calling thread."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from types import TracebackType
from typing import Callable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from . import commands
from .base_client import READ_BYTES, BaseClient
from .commands import Body
from .session import EventQueue, Request
from .errors import Closed, ConnectError, ConnectionLost, NoAnswer, ProtocolError
from .events import Event, Record
from .settings import WAIT_MAX, Address, Settings, addresses

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
        """The next event, or None after `timeout` seconds or the end of the subscription.

        A call that connects again can take longer, up to `Settings.timeout` for each address that
        is tried."""
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


class Client(BaseClient[None, Subscription, List[Record], int]):
    """A client of a content server, for one thread at a time.

    It reads the connection whenever a call waits for something. After a lost connection it
    reconnects, sends unacknowledged messages again and places its subscriptions anew; each then
    gets a `Resumed` event.
    """

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        super().__init__(servers, settings)
        self._socket: Optional[socket.socket] = None
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
                client._connect()
                return client
            except (ConnectError, ConnectionLost, NoAnswer) as error:
                tried.append(str(error))
            except BaseException:
                client._drop()
                raise
        raise ConnectError("; ".join(tried))

    def flush(self) -> None:
        """Waits until the server has executed all requests."""
        self._ask(commands.flush())
        self._wait(lambda: self._session.is_acknowledged, "cannot publish")
        self._session.raise_refusal()

    def close(self) -> None:
        """Closes the connection, once the server has read everything or after `timeout` seconds.

        It tells of no failure: call `flush` first, or leave a `with` block, which does both."""
        self._session.fail(Closed("the client has been closed"))
        if self._socket is not None:
            self._linger(self._socket)
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

    def _query(self, request: Request) -> List[Record]:
        return self._ask(request).records

    def _delete(self, request: Request) -> int:
        return commands.deleted(self._ask(request))

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
        if self._not_before <= time.monotonic():
            # Not bounded by `until`: a program that polls would give up each attempt before the
            # server can answer.
            try:
                self._connect()
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

    def _connect(self) -> None:
        """Connects to the next server and logs on."""
        address = self._server()
        link, limit = self._dial(address)
        self._socket = link
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
        self._check_logon(logon, address, time.monotonic())

    def _dial(self, address: Address) -> Tuple[socket.socket, float]:
        """Connects to the first address of the server that answers, each of which has `timeout`
        seconds; returns also the end of this time, within which the client logs on."""
        try:
            link, limit = self._dial_any(address)
            try:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                context = address.context(self._settings)
                if context is not None:
                    link.settimeout(max(SHORTEST_WAIT, limit - time.monotonic()))
                    link = context.wrap_socket(link, server_hostname=address.host)
                return link, limit
            except BaseException:
                link.close()
                raise
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"cannot connect to {address}: {error}") from error

    def _dial_any(self, address: Address) -> Tuple[socket.socket, float]:
        last: OSError = OSError("no such host")
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in found:
            limit = time.monotonic() + self._settings.timeout
            link = socket.socket(family, kind, protocol)
            try:
                link.settimeout(self._settings.timeout)
                link.connect(place)
                return link, limit
            except OSError as error:
                link.close()
                last = error
            except BaseException:
                link.close()
                raise
        raise last

    def _linger(self, link: socket.socket) -> None:
        """Reads on until the server has read everything and ends the connection, too. Closing a
        socket with unread bytes would reset the connection, and what the server has not read yet
        would be lost."""
        until = time.monotonic() + self._settings.timeout
        if isinstance(link, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                link.settimeout(self._settings.timeout)
                # Fails if records are unread, but says that this end is over before.
                link.unwrap()
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_WR)
            while time.monotonic() < until:
                link.settimeout(max(SHORTEST_WAIT, until - time.monotonic()))
                if not link.recv(READ_BYTES):
                    return

    def _step(self, link: socket.socket, until: Optional[float]) -> None:
        """Sends pending bytes and reads once, waiting until `until` at most."""
        self._send(link)
        every = self._settings.heartbeat
        waits = [WAIT_MAX] if until is None else [until - time.monotonic(), WAIT_MAX]
        if every is not None:
            waits.append(every / 2)
        link.settimeout(max(SHORTEST_WAIT, min(waits)))
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

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
