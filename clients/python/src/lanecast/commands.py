"""Commands of both clients, as headers."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence, Union

from . import wire
from .session import Session, EventQueue, Request

BATCH = 100
"""Records in one `sow` message of an answer."""
Header = Dict[str, wire.Value]
_Options = Mapping[str, Union[str, int, bool, None]]
Body = Union[bytes, bytearray, memoryview, str]


def body_bytes(body: Body) -> bytes:
    """A message as bytes; text is written in UTF-8."""
    if isinstance(body, str):
        return body.encode()
    # `bytes(5)` would be five zeros.
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"a message is bytes or text, not {type(body).__name__}: use json.dumps?")
    return bytes(body)


def _header(cmd: str, **fields: Optional[wire.Value]) -> Header:
    header: Header = {"cmd": cmd}
    header.update({name: value for name, value in fields.items() if value is not None})
    return header


def _listed(select: Optional[str]) -> Optional[str]:
    """Fields in the form of the `select` option."""
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


def flush() -> Request:
    """A command that completes after all earlier ones."""
    header = _header("flush", ack_type="processed,completed")
    return Request("cannot flush", header, until="completed")


def subscription(
    session: Session,
    topic: str,
    filter: Optional[str],
    *,
    send_oof: bool,
    conflation: Optional[str],
    select: Optional[str],
    is_delta: bool,
    options: str,
) -> Request:
    """A subscription to messages published from now on."""
    what, name = f"cannot subscribe to {topic}", session.new_name()
    options_given: _Options = {"oof": send_oof, "conflation": conflation, "select": _listed(select)}
    header = _header(
        "delta_subscribe" if is_delta else "subscribe",
        topic=topic,
        filter=filter,
        opts=wire.write_options(options_given, options) or None,
        ack_type="processed",
        sub_id=name,
    )
    return Request(what, header, queue=EventQueue(what, name, header))


def query_and_subscription(
    session: Session,
    topic: str,
    filter: Optional[str],
    *,
    order_by: Optional[str],
    top: Optional[int],
    send_oof: bool,
    conflation: Optional[str],
    select: Optional[str],
    is_delta: bool,
    options: str,
) -> Request:
    """A query of the stored records, followed by a subscription."""
    what, name = f"cannot query and subscribe to {topic}", session.new_name()
    options_given: _Options = {"oof": send_oof, "conflation": conflation, "select": _listed(select)}
    header = _header(
        "sow_and_delta_subscribe" if is_delta else "sow_and_subscribe",
        topic=topic,
        batch_size=BATCH,
        filter=filter,
        orderby=order_by,
        top_n=top,
        opts=wire.write_options(options_given, options) or None,
        ack_type="processed",
        query_id=name,
        sub_id=name,
    )
    return Request(what, header, queue=EventQueue(what, name, header))


def query(
    topic: str,
    filter: Optional[str],
    *,
    order_by: Optional[str],
    top: Optional[int],
    skip: int,
    keys: Optional[Sequence[str]],
    select: Optional[str],
    options: str,
) -> Request:
    """A query of the stored records."""
    options_given: _Options = {"skip_n": skip or None, "select": _listed(select)}
    header = _header(
        "sow",
        topic=topic,
        batch_size=BATCH,
        filter=filter,
        orderby=order_by,
        top_n=top,
        sow_keys=None if keys is None else ",".join(keys),
        opts=wire.write_options(options_given, options) or None,
        ack_type="processed,completed",
    )
    return Request(f"cannot query {topic}", header, until="completed")


def deletion(
    topic: str,
    filter: Optional[str],
    *,
    keys: Optional[Sequence[str]],
    like: Optional[Body],
) -> Request:
    """A deletion of records."""
    if sum(given is not None for given in (filter, keys, like)) != 1:
        raise ValueError("give exactly one of filter, keys and like, to select records")
    header = _header(
        "sow_delete",
        topic=topic,
        filter=filter,
        sow_keys=None if keys is None else ",".join(keys),
        ack_type="stats",
    )
    body = b"" if like is None else body_bytes(like)
    return Request(
        f"cannot delete from {topic}", header, body, until="stats", is_repeatable=False
    )


def deleted(request: Request) -> int:
    """How many records a deletion removed."""
    return wire.number(request.answer, "records_deleted")
