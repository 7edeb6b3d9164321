"""Frames and headers as bytes, including captures of an independent client."""

from __future__ import annotations

import random
import unittest
from typing import Dict, List

from testbed import CHECKOUT

from lanecast import ProtocolError, wire

EXCHANGES = CHECKOUT / "crates/wire/src/command/exchanges.txt"
PAGE = CHECKOUT / "docs/protocol/command.md"


def exchanges() -> Dict[str, bytes]:
    """Each frame of the captured exchanges, by its name."""
    frames = {}
    for line in EXCHANGES.read_text().splitlines():
        name, _, frame = line.partition(": ")
        frames[name] = bytes.fromhex(frame[:8]) + frame[8:].encode()
    return frames


def cut(data: bytes, frame_max: int = 1 << 20) -> List[bytes]:
    """Payloads of the received frames."""
    frames, payloads = wire.Frames(frame_max), []
    frames.add(data)
    while (payload := frames.next()) is not None:
        payloads.append(payload)
    return payloads


class Captured(unittest.TestCase):
    def test_each_is_read_and_written_again_byte_by_byte(self) -> None:
        frames = exchanges()
        self.assertGreater(len(frames), 20)
        for name, frame in frames.items():
            with self.subTest(name):
                (payload,) = cut(frame)
                header, at = wire.read_header(payload)
                command = name.split()[1]
                if name.startswith("C"):
                    self.assertEqual(header["cmd"], "p" if command == "publish" else command)
                values: Dict[str, wire.Value] = dict(header)
                self.assertEqual(wire.write_frame(values, payload[at:]), frame)

    def test_they_are_found_however_they_are_cut(self) -> None:
        frames = list(exchanges().values())
        chance = random.Random(7)
        for _ in range(50):
            found, reader, stream = [], wire.Frames(), b"".join(frames)
            while stream:
                length = chance.randint(1, 200)
                reader.add(stream[:length])
                stream = stream[length:]
                while (payload := reader.next()) is not None:
                    found.append(payload)
            self.assertEqual(found, [frame[4:] for frame in frames])

    def test_records_of_a_batch(self) -> None:
        with self.assertRaisesRegex(ProtocolError, "at byte"):
            list(wire.read_records(b'{"k":"88","l":6}{"a":1}'))
        whole = b'{"k":"88","l":7}{"a":1}{"l":0,"k":"9"}'
        records = [(header["sow_key"], content) for header, content in wire.read_records(whole)]
        self.assertEqual(records, [("88", b'{"a":1}'), ("9", b"")])


class Headers(unittest.TestCase):
    def test_the_page_says_the_same(self) -> None:
        page = PAGE.read_text()
        rows = [line for line in page.splitlines() if line.count("|") == 6]
        self.assertEqual(len(rows), len(wire.FIELDS) + 2)
        for field in wire.FIELDS.values():
            short = "-" if field.short == field.long else field.short
            row = f"| {field.long} | {short} | {field.written} | {field.shape} |"
            self.assertIn(row, page)

    def test_both_spellings_spaces_and_quotes(self) -> None:
        for field in wire.FIELDS.values():
            for name in (field.long, field.short):
                header, at = wire.read_header(f'{{"{name}":"1"}}'.encode())
                self.assertEqual(header, {field.long: "1"})
        header, at = wire.read_header(b' { "cmd" : p , "bs":5, "send_oof":true } rest')
        self.assertEqual(header, {"cmd": "p", "batch_size": "5", "send_oof": "true"})
        self.assertEqual(at, 40)
        self.assertEqual(wire.read_header(b"{}x"), ({}, 2))

    def test_unknown_members_are_passed_over(self) -> None:
        header, _ = wire.read_header(b'{"new":{"a":["}",{"b":"\\""}]} ,"c":"p","other":-1.5e3}x')
        self.assertEqual(header, {"cmd": "p"})

    def test_escapes(self) -> None:
        header, _ = wire.read_header(rb'{"f":"a\"\\\/\b\f\n\r\t\u0041\ud83d\ude00\ud83d!"}')
        self.assertEqual(header["filter"], 'a"\\/\b\f\n\r\tA\U0001f600\ufffd!')
        text = 'a"\\\n\x01\u00e9\U0001f600'
        written = wire.write_header({"filter": text})
        self.assertEqual(wire.read_header(written)[0]["filter"], text)

    def test_senseless_input_is_an_error(self) -> None:
        hostile = [
            b"", b"x", b"{", b'{"', b'{"c"', b'{"c":', b'{"c":"p', b'{"c":1', b'{"c":1,', b'{"z":[',
            b"{c:1}", b'{"c":1;}', b'{"c":"\\q"}', b'{"c":"\n"}', b'{"t":"a","topic":"b"}',
            b'{"t":{}}', b'{"t":"\xff"}', b'{"z":' + b"[" * 1_000, b'{"z":' + b"[" * 1_000_000,
            b'{"t":"' + b"a" * wire.HEADER_MAX + b'"}', b'{"c":"\\u12"}', b'{"z":["\\q"]}',
        ]  # fmt: skip
        for payload in hostile:
            with self.subTest(payload[:20]), self.assertRaises(ProtocolError):
                wire.read_header(payload)
        for number in ("-1", "1e3", "", "9" * 21, "\u0661"):
            with self.assertRaises(ProtocolError):
                wire.number({"seq": number}, "seq")

    def test_random_bytes_are_read_or_refused(self) -> None:
        chance = random.Random(11)
        frames = list(exchanges().values())
        for _ in range(20_000):
            payload = bytearray(chance.choice(frames)[4:])
            for _ in range(chance.randint(1, 4)):
                payload[chance.randrange(len(payload))] = chance.choice(b'{}[]",:\\u0 \xff\x00p1')
            try:
                header, at = wire.read_header(bytes(payload))
                list(wire.read_records(bytes(payload[at:])))
            except ProtocolError:
                pass

    def test_frames_longer_than_may_be(self) -> None:
        self.assertEqual(cut(b"\0\0\0\0\0\0\0\1{"), [b"", b"{"])
        with self.assertRaisesRegex(ProtocolError, "longer than the limit"):
            cut(b"\xff\xff\xff\xff")

    def test_options(self) -> None:
        self.assertEqual(wire.write_options({"oof": True, "a": None, "b": False}), "oof")
        written = wire.write_options({"oof": True, "c": "1s"}, "x=[1,2]")
        self.assertEqual(written, "oof,c=1s,x=[1,2]")


if __name__ == "__main__":
    unittest.main()
