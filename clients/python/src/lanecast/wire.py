"""Frames, headers and records as bytes: see docs/protocol/command.md of the project.

Nothing here waits. Invalid input is a `ProtocolError`, and lengths are checked before memory is
allocated.
"""

from __future__ import annotations

import json
import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from .errors import ProtocolError

PROTOCOL_VERSION = 1
"""Version of the protocol. Clients and servers refuse others at the logon."""
LENGTH_BYTES = 4
FRAME_MAX = 256 << 20
"""Longest accepted frame, in bytes."""
HEADER_MAX = 256 << 10
"""Longest accepted header, in bytes."""
_DEPTH_MAX = 32

Value = Union[str, int, bool]


class Field(NamedTuple):
    """A header field."""

    long: str
    short: str
    written: str
    shape: str


def _fields() -> Iterator[Field]:
    abbreviated = """
        cmd:c cmd_id:cid topic:t seq:s:number ack_type:a opts:o:text:opts sow_key:k
        filter:f:text:filter msg_len:l:number bookmark:bm timestamp:ts batch_size:bs:number
        expiration:e:number correlation_id:x password:pw message_type:mt
        version:v:text:version leaseperiod:lp
    """
    whole = """
        sub_id sids query_id status reason top_n::number orderby sow_keys client_name user_id
        send_oof::flag send_keys::flag send_empty::flag data_only::flag heartbeat
        timeout_interval::number max_msgs::number gseq::number src records_inserted::number
        records_updated::number records_deleted::number records_returned::number
        topic_matches::number matches::number protocol_version::number
    """
    for word in (abbreviated + whole).split():
        long, short, shape, written = (word.split(":") + ["", "", ""])[:4]
        short = short or long
        yield Field(long, short, written or short, shape or "text")


FIELDS: Dict[str, Field] = {field.long: field for field in _fields()}
"""Fields by their long names."""
_BY_NAME: Dict[bytes, Field] = {}
for _field in FIELDS.values():
    _BY_NAME[_field.long.encode()] = _BY_NAME[_field.short.encode()] = _field

_TEXT = rb'"([^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*)"'
_SPACE = rb"[ \t\r\n]*"
_NAME = re.compile(_SPACE + _TEXT + _SPACE + b":" + _SPACE)
_VALUE = re.compile(rb"(?:" + _TEXT + rb"|([A-Za-z0-9.+_-]+))" + _SPACE)
_QUOTED = re.compile(_TEXT)
_BLANK = re.compile(_SPACE)


def write_header(fields: Mapping[str, Value]) -> bytes:
    """A header with these fields, by their long names, in their order."""
    parts = []
    for name, value in fields.items():
        field = FIELDS[name]
        if field.shape == "text":
            shown = json.dumps(str(value), ensure_ascii=False)
        elif isinstance(value, bool):
            shown = "true" if value else "false"
        else:
            shown = str(value)
        parts.append(f'"{field.written}":{shown}')
    return ("{" + ",".join(parts) + "}").encode()


def write_frame(fields: Mapping[str, Value], body: bytes = b"") -> bytes:
    """A header and a body, with the length before them."""
    payload = write_header(fields) + body
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def read_header(payload: bytes, at: int = 0) -> Tuple[Dict[str, str], int]:
    """The header that begins at byte `at`, by long names, and where the body begins."""
    start, end = at, min(len(payload), at + HEADER_MAX)
    header: Dict[str, str] = {}
    at = _blank(payload, at, end)
    if payload[at : at + 1] != b"{":
        raise ProtocolError(f"at byte {at}: a header begins with {{")
    at = _blank(payload, at + 1, end)
    if payload[at : at + 1] == b"}":
        return header, at + 1
    while True:
        name = _NAME.match(payload, at, end)
        if name is None:
            raise _broken(at, start, end, "a name in quotes and a colon")
        at = name.end()
        field = _BY_NAME.get(name.group(1))
        value = _VALUE.match(payload, at, end)
        if value is not None:
            at = value.end()
            if field is not None:
                if field.long in header:
                    raise ProtocolError(f"{field.long} appears twice")
                header[field.long] = _text(value)
        elif payload[at : at + 1] in (b"{", b"[") and at < end:
            if field is not None:
                raise ProtocolError(f"{field.long} has a value that is invalid")
            at = _blank(payload, _skip(payload, at, start, end), end)
        else:
            raise _broken(at, start, end, "a value")
        mark = payload[at : at + 1] if at < end else b""
        at += 1
        if mark == b"}":
            return header, at
        if mark != b",":
            raise _broken(at - 1, start, end, "a comma or a closing brace")


def _text(value: "re.Match[bytes]") -> str:
    quoted, bare = value.group(1), value.group(2)
    try:
        text = (bare if quoted is None else quoted).decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"at byte {value.start() + error.start}: no UTF-8") from None
    if quoted is None or "\\" not in text:
        return text
    unescaped: str = json.loads(f'"{text}"')
    # A lone surrogate is not valid text: replace it by U+FFFD.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _blank(payload: bytes, at: int, end: int) -> int:
    match = _BLANK.match(payload, at, end)
    return at if match is None else match.end()


def _skip(payload: bytes, at: int, start: int, end: int) -> int:
    """End of the object or list that begins at byte `at`."""
    depth = 0
    while at < end:
        byte = payload[at : at + 1]
        if byte == b'"':
            text = _QUOTED.match(payload, at, end)
            if text is None:
                raise _broken(at, start, end, "a text in quotes")
            at = text.end()
            continue
        at += 1
        if byte in (b"{", b"["):
            depth += 1
            if depth > _DEPTH_MAX:
                raise ProtocolError(f"at byte {at - 1}: values are nested too deep")
        elif byte in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return at
    raise _broken(end, start, end, "a closing brace")


def _broken(at: int, start: int, end: int, expected: str) -> ProtocolError:
    if end - start >= HEADER_MAX:
        return ProtocolError(f"the header is longer than {HEADER_MAX} bytes, or has no end")
    return ProtocolError(f"at byte {at} of the header: {expected} expected")


def number(header: Mapping[str, str], name: str, default: int = 0) -> int:
    """The number in a field, or `default` if the field is not there."""
    text = header.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ProtocolError(f"{name} has a value that is invalid")
    return int(text)


def names(text: str) -> List[str]:
    """Names of a comma-separated list."""
    return [name for name in text.split(",") if name]


def read_records(body: bytes) -> Iterator[Tuple[Dict[str, str], bytes]]:
    """The headers and bodies of the records in a `sow` message."""
    at = 0
    while at < len(body):
        header, at = read_header(body, at)
        if "msg_len" not in header:
            raise ProtocolError("msg_len is missing in a record")
        length = number(header, "msg_len")
        if length > len(body) - at:
            raise ProtocolError("a record is longer than the message that it is in")
        yield header, body[at : at + length]
        at += length


class Frames:
    """Splits received bytes into the payloads of frames."""

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self._buffer = bytearray()
        self._consumed = 0
        self._max = frame_max

    def clear(self) -> None:
        """Discards a partial frame."""
        self._buffer.clear()
        self._consumed = 0

    def add(self, data: bytes) -> None:
        """Adds received bytes."""
        del self._buffer[: self._consumed]
        self._consumed = 0
        self._buffer += data

    def next(self) -> Optional[bytes]:
        """The payload of the next complete frame; an empty one is a heartbeat."""
        start = self._consumed + LENGTH_BYTES
        if len(self._buffer) < start:
            return None
        length = int.from_bytes(self._buffer[self._consumed : start], "big")
        if length > self._max:
            raise ProtocolError(
                f"a frame of {length} bytes is longer than the limit of {self._max}"
            )
        if len(self._buffer) < start + length:
            return None
        self._consumed = start + length
        return bytes(self._buffer[start : self._consumed])


def write_options(options: Mapping[str, Union[str, int, bool, None]], more: str = "") -> str:
    """A list of options: flags, names with values, then `more` unchanged."""
    parts = []
    for name, value in options.items():
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f"{name}={value}")
    if more:
        parts.append(more)
    return ",".join(parts)
