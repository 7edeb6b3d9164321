"""The client for asyncio: the methods of the blocking client, for many tasks at once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Coroutine, List
from typing import Optional, Sequence, Tuple, Type, Union

from . import commands
from .base_client import READ_BYTES, BaseClient
from .commands import Body
from .session import EventQueue, Request
from .errors import Closed, ConnectError, ConnectionLost, LanecastError, NoAnswer, ProtocolError
from .events import Event, Record
from .settings import Address, Settings, addresses


class Subscription:
    """A subscription: iterate over its events, or await `next`."""

    def __init__(self, client: Client, queue: EventQueue) -> None:
        self._client = client
        self._queue = queue
        self._ready = asyncio.Event()
        queue.wake = self._ready.set

    @property
    def name(self) -> str:
        """The subscription's name, as in `Message.subscriptions`."""
        return self._queue.name

    async def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event, or None after `timeout` seconds or the end of the subscription.
        Cancelling loses nothing."""
        queue, loop = self._queue, asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        event = queue.take()
        while event is None and not queue.has_ended:
            rest = None if until is None else until - loop.time()
            if rest is not None and rest <= 0:
                return None
            self._ready.clear()
            await _wait_for(self._ready, rest)
            event = queue.take()
        return event

    async def unsubscribe(self) -> None:
        """Ends the subscription. Events received before remain readable."""
        await self._client._unsubscribe(self._queue)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            event = await self.next()
            if event is None:
                return
            yield event

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.unsubscribe()


_Done = Coroutine[Any, Any, None]
_Subscribed = Coroutine[Any, Any, Subscription]
_Records = Coroutine[Any, Any, List[Record]]
_Count = Coroutine[Any, Any, int]


class Client(BaseClient[_Done, _Subscribed, _Records, _Count]):
    """A client of a content server, for tasks of one event loop.

    A background task reads the connection and sends heartbeats. After a lost connection it
    reconnects, sends unacknowledged messages again and places its subscriptions anew; each then
    gets a `Resumed` event. A subscription that is read too slowly ends with `Overrun`;
    others continue.
    """

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        super().__init__(servers, settings)
        self._reader: Optional[asyncio.StreamReader] = None
        self._writer: Optional[asyncio.StreamWriter] = None
        self._progress = asyncio.Event()
        self._reading: Optional[asyncio.Task[None]] = None

    @classmethod
    async def connect(
        cls, servers: Union[str, Sequence[str]], settings: Optional[Settings] = None
    ) -> Client:
        """Connects to the first reachable server and logs on."""
        client = cls(addresses(servers), settings or Settings())
        tried: List[str] = []
        for _ in client._servers:
            try:
                reader = await client._connect()
                client._reading = asyncio.ensure_future(client._receive_loop(reader))
                return client
            except (ConnectError, ConnectionLost, NoAnswer) as error:
                tried.append(str(error))
            except BaseException:
                client._drop()
                raise
        raise ConnectError("; ".join(tried))

    async def flush(self) -> None:
        """Waits until the server has executed all requests."""
        await self._ask(commands.flush())
        await self._wait(lambda: self._session.is_acknowledged, "cannot publish")
        self._session.raise_refusal()

    async def close(self) -> None:
        """Closes the connection, once the server has read everything or after `timeout` seconds.

        It tells of no failure: call `flush` first, or leave an `async with` block, which does
        both."""
        self._session.fail(Closed("the client has been closed"))
        self._progress.set()
        try:
            if self._reading is not None:
                self._reading.cancel()
                await asyncio.wait([self._reading])
            if self._reader is not None and self._writer is not None:
                await self._linger(self._reader, self._writer)
        finally:
            self._drop()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and self._session.failure is None:
                await self.flush()
        finally:
            await self.close()

    # Requests.

    async def _publish(self, fields: commands.Header, body: Body) -> None:
        content, session = commands.body_bytes(body), self._session
        await self._wait(lambda: session.is_logged_on and session.has_room, "cannot publish")
        session.raise_refusal()
        session.publish(fields, content)
        self._send()
        if self._writer is not None:
            await self._drain(self._writer)

    async def _ask(self, request: Request) -> Request:
        answered = asyncio.Event()
        request.wake = answered.set
        if self._session.failure is not None:
            raise self._session.failure
        self._session.ask(request)
        self._send()
        try:
            if not await _wait_for(answered, self._settings.timeout):
                raise NoAnswer(request.what, self._settings.timeout)
        except BaseException:
            self._session.abandon(request)
            self._send()
            raise
        if request.error is not None:
            raise request.error
        return request

    async def _subscribe(self, request: Request) -> Subscription:
        await self._ask(request)
        assert request.queue is not None
        return Subscription(self, request.queue)

    async def _query(self, request: Request) -> List[Record]:
        return (await self._ask(request)).records

    async def _delete(self, request: Request) -> int:
        return commands.deleted(await self._ask(request))

    async def _unsubscribe(self, queue: EventQueue) -> None:
        self._session.unsubscribe(queue)
        self._send()

    async def _wait(self, is_over: Callable[[], bool], what: str) -> None:
        until = asyncio.get_running_loop().time() + self._settings.timeout
        while not is_over():
            if self._session.failure is not None:
                raise self._session.failure
            self._progress.clear()
            rest = until - asyncio.get_running_loop().time()
            if rest <= 0 or not await _wait_for(self._progress, rest):
                raise NoAnswer(what, self._settings.timeout)

    # The connection.

    def _send(self) -> None:
        # The session repeats on the next connection anything that a closed one did not take.
        data = self._session.output()
        if data and self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def _drain(self, writer: asyncio.StreamWriter) -> None:
        """Waits while the connection takes no more; ends it after the timeout of an answer."""
        low, _ = writer.transport.get_write_buffer_limits()
        may_wait = writer.transport.get_write_buffer_size() > low
        try:
            if may_wait:
                await asyncio.wait_for(writer.drain(), self._settings.timeout)
            else:
                await writer.drain()
        except asyncio.TimeoutError:
            writer.transport.abort()
        except OSError:
            # The receive loop notices the lost connection too.
            pass

    async def _linger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads on until the server has read everything and ends the connection, too. Closing a
        socket with unread bytes would reset the connection, and what the server has not read yet
        would be lost."""
        discarding = asyncio.ensure_future(_discard(reader))
        try:
            await asyncio.wait_for(_end(writer, discarding), self._settings.timeout)
        except (OSError, asyncio.TimeoutError):
            writer.transport.abort()
        finally:
            discarding.cancel()

    async def _dial(self, address: Address) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the first address of the server that answers, each of which has `timeout`
        seconds."""
        loop, timeout = asyncio.get_running_loop(), self._settings.timeout
        context = address.context(self._settings)
        name = None if context is None else address.host
        looked_up = loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        last: Union[OSError, asyncio.TimeoutError] = OSError("no such host")
        for family, kind, protocol, _, place in await asyncio.wait_for(looked_up, timeout):
            until = loop.time() + timeout
            link = socket.socket(family, kind, protocol)
            try:
                link.setblocking(False)
                await asyncio.wait_for(loop.sock_connect(link, place), timeout)
            except (OSError, asyncio.TimeoutError) as error:
                link.close()
                last = error
                continue
            except BaseException:
                link.close()
                raise
            opened = asyncio.open_connection(sock=link, ssl=context, server_hostname=name)
            return await asyncio.wait_for(opened, max(0.0, until - loop.time()))
        raise last

    async def _connect(self) -> asyncio.StreamReader:
        """Connects to the next server and logs on."""
        address = self._server()
        try:
            reader, self._writer = await self._dial(address)
            self._reader = reader
        except asyncio.TimeoutError:
            why = f"no connection within {self._settings.timeout:g} s"
            raise ConnectError(f"cannot connect to {address}: {why}") from None
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"cannot connect to {address}: {error}") from error
        logon = self._session.connected(asyncio.get_running_loop().time())
        try:
            await asyncio.wait_for(self._wait_logon(reader, logon), self._settings.timeout)
        except asyncio.TimeoutError:
            self._disconnect(f"no answer from {address}")
            raise NoAnswer(f"cannot log on to {address}", self._settings.timeout) from None
        except (OSError, ConnectionLost) as error:
            self._disconnect(f"cannot log on to {address}: {error}")
            raise ConnectionLost(f"cannot log on to {address}: {error}") from error
        except ProtocolError as error:
            self._fail(error)
            raise
        self._check_logon(logon, address, asyncio.get_running_loop().time())
        return reader

    async def _wait_logon(self, reader: asyncio.StreamReader, logon: Request) -> None:
        self._send()
        while not logon.is_done:
            await self._step(reader)

    async def _step(self, reader: asyncio.StreamReader) -> None:
        """Reads once, and sends a heartbeat if one is due."""
        every, loop = self._settings.heartbeat, asyncio.get_running_loop()
        try:
            wait = None if every is None else every / 2
            data = await asyncio.wait_for(reader.read(READ_BYTES), wait)
        except asyncio.TimeoutError as error:
            # Also the system's error after a connection without answers, which ends each read.
            if reader.exception() is not None:
                raise ConnectionLost(str(error)) from error
        else:
            if not data:
                raise ConnectionLost("the server has closed it")
            self._session.receive(data, loop.time())
        self._session.tick(loop.time())
        self._send()
        self._progress.set()

    async def _receive_loop(self, first: asyncio.StreamReader) -> None:
        """Reads until the client is closed, reconnecting as needed."""
        reader: Optional[asyncio.StreamReader] = first
        while self._session.failure is None:
            try:
                if reader is None:
                    reader = await self._connect()
                    self._progress.set()
                await self._step(reader)
            except (ConnectError, NoAnswer):
                await asyncio.sleep(self._backoff.delay())
            except (OSError, ConnectionLost) as error:
                if reader is not None:
                    self._disconnect(f"the connection has ended: {error}")
                    self._backoff.lost(asyncio.get_running_loop().time())
                reader = None
                if not self._settings.reconnect:
                    self._fail(ConnectionLost(f"the connection has ended: {error}"))
                await asyncio.sleep(self._backoff.delay())
            except LanecastError as error:
                self._fail(error)
            except GeneratorExit:
                # The loop is gone, and with it all that could wait.
                raise
            except BaseException as error:
                # Unexpected, or the task was cancelled by another one than `close`: fail pending
                # requests rather than leave them waiting for ever.
                if self._session.failure is None:
                    self._fail(LanecastError(f"the client has failed: {error!r}"))
                raise

    def _drop(self) -> None:
        # Calls that wait look at the session again once this one returns.
        self._progress.set()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


async def _discard(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(READ_BYTES):
            pass


async def _end(writer: asyncio.StreamWriter, discarding: asyncio.Task[None]) -> None:
    """Sends pending bytes and the end, and waits for that of the server."""
    if writer.can_write_eof():
        writer.write_eof()
        await discarding
    writer.close()
    await writer.wait_closed()


async def _wait_for(event: asyncio.Event, seconds: Optional[float]) -> bool:
    """Waits for the event; returns whether it was set in time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return event.is_set()
    return True
