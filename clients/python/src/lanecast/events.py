"""What an application gets: records, messages, and what became of them."""

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
        """The message as text. What is no UTF-8 shows as U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The message as a value, if it is JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Record(_Body):
    """A record that was kept when the question was asked."""

    key: str
    """Its key within the topic."""


@dataclass(frozen=True)
class Message(_Body):
    """A message that has been published."""

    key: Optional[str]
    """The key of the record that it changes, if its topic keeps records."""
    subscriptions: Tuple[str, ...]
    """The names of the subscriptions that it is for."""
    correlation: Optional[str] = None
    """What its publisher wanted handed on unread."""


@dataclass(frozen=True)
class Left(_Body):
    """A record is not among those that are followed any more."""

    key: Optional[str]
    subscriptions: Tuple[str, ...]
    reason: str
    """`match`: it does not meet the filter now; `deleted`; `expired`."""


@dataclass(frozen=True)
class Current:
    """All records have been told; what comes now are changes."""


@dataclass(frozen=True)
class Resumed:
    """The connection broke and is there again.

    A subscription made by `query_and_subscribe` starts anew: forget its records, they follow.
    To any other, messages that were published in between do not come.
    """

    why: str
    """What had ended the connection."""


Event = Union[Record, Message, Left, Current, Resumed]
