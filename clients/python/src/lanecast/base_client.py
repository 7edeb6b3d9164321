"""The calls and the connection state of both clients, blocking and asynchronous.

`Client` and `aio.Client` derive from it. They add waiting: the one reads its socket on the calling
thread, the other awaits a background task.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from typing import Generic, List, Optional, Sequence, Tuple, TypeVar

from . import commands
from .commands import Body
from .errors import LanecastError
from .events import Record
from .session import Request, Session
from .settings import Address, Backoff, Settings

READ_BYTES = 256 << 10

# Results of the calls: values of the blocking client, coroutines of the one for asyncio.
Done = TypeVar("Done")
Subscribed = TypeVar("Subscribed")
Records = TypeVar("Records")
Count = TypeVar("Count")


class BaseClient(ABC, Generic[Done, Subscribed, Records, Count]):
    """A client without its way of waiting."""

    def __init__(self, servers: Tuple[Address, ...], settings: Settings) -> None:
        self._servers = servers
        self._settings = settings
        # The time in microseconds: above the numbers of an earlier client of this name.
        self._session = Session(settings, time.time_ns() // 1000)
        self._backoff = Backoff(settings.delay_max)
        self._next_server = 0

    def publish(
        self,
        topic: str,
        body: Body,
        *,
        correlation: Optional[str] = None,
        key: Optional[str] = None,
        expiration: Optional[int] = None,
    ) -> Done:
        """Publishes a message. A refusal is raised by a later call, by `flush` at the latest.
        `correlation` is passed on unread; `key` and `expiration` (in seconds) are for topics that
        store records."""
        fields = commands.publication(
            topic, correlation=correlation, key=key, expiration=expiration
        )
        return self._publish(fields, body)

    def delta_publish(
        self,
        topic: str,
        body: Body,
        *,
        correlation: Optional[str] = None,
        key: Optional[str] = None,
        expiration: Optional[int] = None,
    ) -> Done:
        """Publishes the changed fields of a record and its key fields, otherwise like `publish`."""
        fields = commands.publication(
            topic, is_delta=True, correlation=correlation, key=key, expiration=expiration
        )
        return self._publish(fields, body)

    @property
    def duplicates(self) -> int:
        """Number of messages that the server acknowledged as duplicates."""
        return self._session.duplicates

    def subscribe(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        out_of_focus: bool = False,
        conflation: Optional[str] = None,
        select: Optional[str] = None,
        delta: bool = False,
        options: str = "",
    ) -> Subscribed:
        """Subscribes to the messages of a topic, or of all topics that match a pattern such as
        `^orders`, that match the filter. `delta` delivers only changed fields and key fields, for
        topics that store records; `out_of_focus`, `conflation` and `select` are as in
        `query_and_subscribe`."""
        request = commands.subscription(
            self._session,
            topic,
            filter,
            send_oof=out_of_focus,
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
        out_of_focus: bool = True,
        conflation: Optional[str] = None,
        select: Optional[str] = None,
        delta: bool = False,
        options: str = "",
    ) -> Subscribed:
        """Delivers the stored records, each as a `Record`, then `Current`, then changes, without a
        gap. `out_of_focus` also reports records that no longer match. `conflation` (`100ms`)
        delivers a record at most once in that time. `delta` reduces changes to changed fields and
        key fields, `select` (`-/,+/price`) to the given fields."""
        request = commands.query_and_subscription(
            self._session,
            topic,
            filter,
            order_by=order_by,
            top=top,
            send_oof=out_of_focus,
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
    ) -> Records:
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
        return self._query(request)

    def delete(
        self,
        topic: str,
        filter: Optional[str] = None,
        *,
        keys: Optional[Sequence[str]] = None,
        like: Optional[Body] = None,
    ) -> Count:
        """Deletes records by filter, by keys, or by the key fields of the message `like`; returns
        their number."""
        return self._delete(commands.deletion(topic, filter, keys=keys, like=like))

    # Each client's way to send a request and to wait for its answer.

    @abstractmethod
    def _publish(self, fields: commands.Header, body: Body) -> Done: ...

    @abstractmethod
    def _subscribe(self, request: Request) -> Subscribed: ...

    @abstractmethod
    def _query(self, request: Request) -> Records: ...

    @abstractmethod
    def _delete(self, request: Request) -> Count: ...

    # The connection.

    @abstractmethod
    def _drop(self) -> None:
        """Closes the connection, if there is one."""

    def _server(self) -> Address:
        """The server to connect to next."""
        address = self._servers[self._next_server % len(self._servers)]
        self._next_server += 1
        return address

    def _check_logon(self, logon: Request, address: Address, now: float) -> None:
        """Raises the server's refusal, or records the connection."""
        if logon.error is not None:
            self._fail(logon.error)
            raise logon.error
        self._backoff.connected(now)
        self._report_state("connected", str(address))

    def _disconnect(self, why: str) -> None:
        self._drop()
        self._session.lost(why)
        self._report_state("waiting", why)

    def _fail(self, error: LanecastError) -> None:
        self._drop()
        if self._session.failure is None or self._session.failure is error:
            self._session.fail(error)
            self._report_state("failed", str(error))

    def _report_state(self, state: str, why: str) -> None:
        if self._settings.on_state is not None:
            try:
                self._settings.on_state(state, why)
            except Exception:
                # The client goes on: its calls would wait for ever otherwise.
                logging.getLogger("lanecast").exception("on_state has failed")
