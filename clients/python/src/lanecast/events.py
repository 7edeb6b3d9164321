"""Events of a subscription: records, messages, and their changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional, Tuple, Union


@dataclass(frozen=True)
class _Body:
    topic: str
    body: bytes

    @property
    def text(self) -> str:
        """The message as text; invalid UTF-8 becomes U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The message as a value, if it is JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Record(_Body):
    """A record of a query's answer."""

    key: str
    """Its key within the topic."""


@dataclass(frozen=True)
class Message(_Body):
    """A published message."""

    key: Optional[str]
    """The key of the changed record, if the topic stores records."""
    subscriptions: Tuple[str, ...]
    """Names of the subscriptions that it matches."""
    correlation: Optional[str] = None
    """The publisher's correlation id, passed on unread."""


@dataclass(frozen=True)
class OutOfFocus(_Body):
    """A record is out of focus: it no longer matches the subscription (AMPS `oof`)."""

    key: Optional[str]
    subscriptions: Tuple[str, ...]
    reason: str
    """`match` (it no longer matches the filter), `deleted` or `expired`."""


@dataclass(frozen=True)
class Current:
    """All stored records were delivered; changes follow."""


@dataclass(frozen=True)
class Resumed:
    """The connection was lost and is established again.

    A subscription by `query_and_subscribe` starts anew: discard its records, they follow again.
    Any other subscription misses the messages published in between.
    """

    why: str
    """Why the connection was lost."""


Event = Union[Record, Message, OutOfFocus, Current, Resumed]
