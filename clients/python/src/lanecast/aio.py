"""The client for asyncio: the same words as the blocking one, for many tasks at once."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import AsyncIterator, Callable, List, Optional, Sequence, Tuple, Type, Union

from . import commands
from .commands import Body
from .conversation import Conversation, Feed, Task
from .errors import Closed, ConnectError, ConnectionLost, LanecastError, NoAnswer, ProtocolError
from .events import Event, Record
from .settings import Address, Backoff, Settings, addresses

READ_BYTES = 256 << 10


class Subscription:
    """What comes for one subscription: iterate over it, or wait for the `next` event."""

    def __init__(self, client: Client, feed: Feed) -> None:
        self._client = client
        self._feed = feed
        self._came = asyncio.Event()
        feed.wake = self._came.set

    @property
    def name(self) -> str:
        """Its name, as in `Message.subscriptions`."""
        return self._feed.name

    async def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event. None if none comes within `timeout` seconds, or it has ended. Nothing
        is lost if waiting is cancelled."""
        feed, loop = self._feed, asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        event = feed.take()
        while event is None and not feed.has_ended:
            rest = None if until is None else until - loop.time()
            if rest is not None and rest <= 0:
                return None
            self._came.clear()
            await _within(self._came, rest)
            event = feed.take()
        return event

    async def unsubscribe(self) -> None:
        """Ends it. What has come may still be read."""
        await self._client._unsubscribe(self._feed)

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


class Client:
    """A client of a content server, for tasks of one event loop.

    A task of its own reads what comes, and gives signs of life. If the connection breaks, it
    connects again, sends what was not acknowledged, and places the subscriptions; each then gets
    an event `Resumed`. A subscription that is read too slowly ends with `Overrun`; others go on.
    """

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        self._servers = servers
        self._settings = settings
        self._conversation = Conversation(settings)
        self._backoff = Backoff(settings.delay_max)
        self._turn = 0
        self._writer: Optional[asyncio.StreamWriter] = None
        self._moved = asyncio.Event()
        self._reading: Optional[asyncio.Task[None]] = None

    @classmethod
    async def connect(
        cls, servers: Union[str, Sequence[str]], settings: Optional[Settings] = None
    ) -> Client:
        """Connects to the first of the servers that can be reached, and logs on."""
        client = cls(addresses(servers), settings or Settings())
        tried: List[str] = []
        for _ in client._servers:
            try:
                reader = await client._log_on()
                client._reading = asyncio.ensure_future(client._read_on(reader))
                return client
            except (ConnectError, ConnectionLost, NoAnswer) as error:
                tried.append(str(error))
            except BaseException:
                client._drop()
                raise
        raise ConnectError("; ".join(tried))

    async def publish(
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
        await self._publish(fields, body)

    async def delta_publish(
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
        await self._publish(fields, body)

    @property
    def duplicates(self) -> int:
        """How many messages the server did not publish, as it had their numbers before."""
        return self._conversation.duplicates

    async def flush(self) -> None:
        """Waits until the server has done all that it was asked to."""
        await self._ask(commands.flush())
        await self._wait(lambda: self._conversation.is_caught_up, "cannot publish")
        self._conversation.complain()

    async def subscribe(
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
        return await self._follow(task)

    async def query_and_subscribe(
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
        return await self._follow(task)

    async def query(
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
        return (await self._ask(task)).records

    async def delete(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        keys: Optional[Sequence[str]] = None,
        like: Optional[Body] = None,
    ) -> int:
        """Removes the records that meet a filter, have one of the keys, or have the same key
        fields as the message `like`; how many those were."""
        task = commands.deletion(topic, filter, keys=keys, like=like)
        return commands.deleted(await self._ask(task))

    async def close(self) -> None:
        """Ends the connection. Messages that are not acknowledged may not have arrived."""
        self._conversation.fail(Closed("the client has been closed"))
        self._moved.set()
        self._drop()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and self._conversation.failure is None:
                await self.flush()
        finally:
            await self.close()

    # What commands are made of.

    async def _publish(self, fields: commands.Header, body: Body) -> None:
        content, talk = commands.body_bytes(body), self._conversation
        await self._wait(lambda: talk.is_logged_on and talk.has_room, "cannot publish")
        talk.complain()
        talk.publish(fields, content)
        self._send()
        if self._writer is not None:
            try:
                await self._writer.drain()
            except OSError:
                # The connection has broken, which the task that reads finds out as well.
                pass

    async def _ask(self, task: Task) -> Task:
        answered = asyncio.Event()
        task.wake = answered.set
        if self._conversation.failure is not None:
            raise self._conversation.failure
        self._conversation.ask(task)
        self._send()
        try:
            if not await _within(answered, self._settings.timeout):
                raise NoAnswer(task.what, self._settings.timeout)
        except BaseException:
            self._conversation.forget(task)
            self._send()
            raise
        if task.error is not None:
            raise task.error
        return task

    async def _follow(self, task: Task) -> Subscription:
        await self._ask(task)
        assert task.feed is not None
        return Subscription(self, task.feed)

    async def _unsubscribe(self, feed: Feed) -> None:
        self._conversation.unsubscribe(feed)
        self._send()

    async def _wait(self, is_over: Callable[[], bool], what: str) -> None:
        until = asyncio.get_running_loop().time() + self._settings.timeout
        while not is_over():
            if self._conversation.failure is not None:
                raise self._conversation.failure
            self._moved.clear()
            rest = until - asyncio.get_running_loop().time()
            if rest <= 0 or not await _within(self._moved, rest):
                raise NoAnswer(what, self._settings.timeout)

    # The connection.

    def _send(self) -> None:
        # What a connection that has ended does not take is said again on the next one.
        data = self._conversation.output()
        if data and self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def _log_on(self) -> asyncio.StreamReader:
        """Connects to the next server, and logs on."""
        address = self._servers[self._turn % len(self._servers)]
        self._turn += 1
        try:
            dialled = asyncio.open_connection(
                address.host, address.port, ssl=address.context(self._settings)
            )
            reader, self._writer = await asyncio.wait_for(dialled, self._settings.timeout)
        except asyncio.TimeoutError:
            why = f"no connection within {self._settings.timeout:g} s"
            raise ConnectError(f"cannot connect to {address}: {why}") from None
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"cannot connect to {address}: {error}") from error
        logon = self._conversation.connected(asyncio.get_running_loop().time())
        try:
            await asyncio.wait_for(self._until_answered(reader, logon), self._settings.timeout)
        except asyncio.TimeoutError:
            self._lose(f"no answer from {address}")
            raise NoAnswer(f"cannot log on to {address}", self._settings.timeout) from None
        except (OSError, ConnectionLost) as error:
            self._lose(f"cannot log on to {address}: {error}")
            raise ConnectionLost(f"cannot log on to {address}: {error}") from error
        except ProtocolError as error:
            self._end(error)
            raise
        if logon.error is not None:
            self._end(logon.error)
            raise logon.error
        self._backoff.connected(asyncio.get_running_loop().time())
        self._tell("connected", str(address))
        return reader

    async def _until_answered(self, reader: asyncio.StreamReader, logon: Task) -> None:
        self._send()
        while not logon.is_done:
            await self._step(reader)

    async def _step(self, reader: asyncio.StreamReader) -> None:
        """Reads once, and gives a sign of life if it is time."""
        every, loop = self._settings.heartbeat, asyncio.get_running_loop()
        try:
            wait = None if every is None else every / 2
            data = await asyncio.wait_for(reader.read(READ_BYTES), wait)
        except asyncio.TimeoutError:
            pass
        else:
            if not data:
                raise ConnectionLost("the server has closed it")
            self._conversation.receive(data, loop.time())
        self._conversation.tick(loop.time())
        self._send()
        self._moved.set()

    async def _read_on(self, first: asyncio.StreamReader) -> None:
        """Reads until the client is closed, over one connection after the other."""
        reader: Optional[asyncio.StreamReader] = first
        while self._conversation.failure is None:
            try:
                if reader is None:
                    reader = await self._log_on()
                    self._moved.set()
                await self._step(reader)
            except (ConnectError, NoAnswer):
                await asyncio.sleep(self._backoff.delay())
            except (OSError, ConnectionLost) as error:
                if reader is not None:
                    self._lose(f"the connection has ended: {error}")
                    self._backoff.lost(asyncio.get_running_loop().time())
                reader = None
                if not self._settings.reconnect:
                    self._end(ConnectionLost(f"the connection has ended: {error}"))
                await asyncio.sleep(self._backoff.delay())
            except LanecastError as error:
                self._end(error)
            except Exception as error:
                # Not to be expected; whoever waits should not do so for ever.
                self._end(LanecastError(f"the client has failed: {error!r}"))
                raise

    def _lose(self, why: str) -> None:
        self._drop()
        self._conversation.lost(why)
        self._moved.set()
        self._tell("waiting", why)

    def _end(self, error: LanecastError) -> None:
        self._drop()
        if self._conversation.failure is None or self._conversation.failure is error:
            self._conversation.fail(error)
            self._tell("failed", str(error))
        self._moved.set()

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _tell(self, state: str, why: str) -> None:
        if self._settings.on_state is not None:
            self._settings.on_state(state, why)


async def _within(event: asyncio.Event, seconds: Optional[float]) -> bool:
    """Waits for the event; whether it came in time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return event.is_set()
    return True
