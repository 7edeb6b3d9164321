"""The commands that both clients have, as headers."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence, Union

from . import wire
from .conversation import Conversation, Feed, Task

BATCH = 100
"""Records that come together."""
Header = Dict[str, wire.Value]
_Wishes = Mapping[str, Union[str, int, bool, None]]
Body = Union[bytes, bytearray, memoryview, str]


def body_bytes(body: Body) -> bytes:
    """A message as bytes; text is written in UTF-8."""
    if isinstance(body, str):
        return body.encode()
    # `bytes` would make as many zeros of a number.
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"a message is bytes or text, not {type(body).__name__}: use json.dumps?")
    return bytes(body)


def _header(cmd: str, **fields: Optional[wire.Value]) -> Header:
    header: Header = {"cmd": cmd}
    header.update({name: value for name, value in fields.items() if value is not None})
    return header


def _listed(select: Optional[str]) -> Optional[str]:
    """Fields as an option has them."""
    return None if select is None else f"[{select}]"


def publication(
    topic: str,
    *,
    is_delta: bool = False,
    correlation: Optional[str] = None,
    key: Optional[str] = None,
    expiration: Optional[int] = None,
) -> Header:
    """The header of a message."""
    cmd = "delta_publish" if is_delta else "p"
    return _header(
        cmd, topic=topic, correlation_id=correlation, sow_key=key, expiration=expiration
    )


def flush() -> Task:
    """Everything before it is done."""
    header = _header("flush", ack_type="processed,completed")
    return Task("cannot flush", header, until="completed")


def subscription(
    conversation: Conversation,
    topic: str,
    filter: Optional[str],
    *,
    tells_left: bool,
    conflation: Optional[str],
    select: Optional[str],
    is_delta: bool,
    options: str,
) -> Task:
    """A subscription to what will be published."""
    what, name = f"cannot subscribe to {topic}", conversation.new_name()
    wishes: _Wishes = {"oof": tells_left, "conflation": conflation, "select": _listed(select)}
    header = _header(
        "delta_subscribe" if is_delta else "subscribe",
        topic=topic,
        filter=filter,
        opts=wire.write_options(wishes, options) or None,
        ack_type="processed",
        sub_id=name,
    )
    return Task(what, header, feed=Feed(what, name, header))


def question_and_subscription(
    conversation: Conversation,
    topic: str,
    filter: Optional[str],
    *,
    order_by: Optional[str],
    top: Optional[int],
    tells_left: bool,
    conflation: Optional[str],
    select: Optional[str],
    is_delta: bool,
    options: str,
) -> Task:
    """A subscription that begins with the records that are kept."""
    what, name = f"cannot query and subscribe to {topic}", conversation.new_name()
    wishes: _Wishes = {"oof": tells_left, "conflation": conflation, "select": _listed(select)}
    header = _header(
        "sow_and_delta_subscribe" if is_delta else "sow_and_subscribe",
        topic=topic,
        batch_size=BATCH,
        filter=filter,
        orderby=order_by,
        top_n=top,
        opts=wire.write_options(wishes, options) or None,
        ack_type="processed",
        query_id=name,
        sub_id=name,
    )
    return Task(what, header, feed=Feed(what, name, header))


def question(
    topic: str,
    filter: Optional[str],
    *,
    order_by: Optional[str],
    top: Optional[int],
    skip: int,
    keys: Optional[Sequence[str]],
    select: Optional[str],
    options: str,
) -> Task:
    """A question for the records that are kept."""
    wishes: _Wishes = {"skip_n": skip or None, "select": _listed(select)}
    header = _header(
        "sow",
        topic=topic,
        batch_size=BATCH,
        filter=filter,
        orderby=order_by,
        top_n=top,
        sow_keys=None if keys is None else ",".join(keys),
        opts=wire.write_options(wishes, options) or None,
        ack_type="processed,completed",
    )
    return Task(f"cannot query {topic}", header, until="completed")


def deletion(
    topic: str,
    filter: Optional[str],
    *,
    keys: Optional[Sequence[str]],
    like: Optional[Body],
) -> Task:
    """A wish that records be removed."""
    if sum(given is not None for given in (filter, keys, like)) != 1:
        raise ValueError("say by one of filter, keys and like which records are to be removed")
    header = _header(
        "sow_delete",
        topic=topic,
        filter=filter,
        sow_keys=None if keys is None else ",".join(keys),
        ack_type="stats",
    )
    body = b"" if like is None else body_bytes(like)
    return Task(
        f"cannot delete from {topic}", header, body, until="stats", is_repeatable=False
    )


def deleted(task: Task) -> int:
    """How many records a deletion removed."""
    return wire.number(task.answer, "records_deleted")
