/** Headers as bytes, among them those that an independent client exchanged. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ProtocolError, readHeader, readRecords, writeMessage } from "../wire.js";

const root = new URL("../../../", import.meta.url);
const lines = readFileSync(new URL("crates/wire/src/command/exchanges.txt", root), "utf8");
const encode = (text) => new TextEncoder().encode(text);

test("captured exchanges are read and written again byte by byte", () => {
  const frames = lines.trim().split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
  assert.ok(frames.length > 20);
  const numbers = new Set(["batch_size", "seq", "msg_len"]);
  let written = 0;
  for (const frame of frames) {
    const payload = frame.slice(8);
    assert.equal(payload.length, parseInt(frame.slice(0, 8), 16));
    const bytes = encode(payload);
    const [header, at] = readHeader(bytes);
    // Counts that a client has no use for are passed over.
    if (frame.includes("topic_matches") || frame.includes('"bm"')) continue;
    const entries = Object.entries(header);
    const fields = entries.map(([name, text]) => [name, numbers.has(name) ? Number(text) : text]);
    const again = writeMessage(Object.fromEntries(fields), bytes.subarray(at));
    assert.equal(new TextDecoder().decode(again), payload);
    written += 1;
  }
  assert.ok(written >= 18);
});

test("both spellings are read, and what is unknown is passed over", () => {
  const [header, at] = readHeader(encode('{"cmd":"p","new":{"a":["}"]},"f":"\\"{","bs":5}rest'));
  assert.deepEqual({ ...header }, { cmd: "p", filter: '"{', batch_size: "5" });
  assert.equal(at, 46);
});

test("what makes no sense is an error", () => {
  const deep = '{"z":' + "[".repeat(100_000) + "]".repeat(100_000) + "}";
  const hostile = ["", "x", "{", '{"c"', '{"c":}', '{"c":"p"', '{"t":{}}', '{"t":null}', "{]",
    '{"t":"a","topic":"b"}', '{"c":"\\q"}', "[1]", `{"t":"${"a".repeat(300_000)}"}`];
  for (const text of hostile) {
    assert.throws(() => readHeader(encode(text)), ProtocolError, text.slice(0, 30));
  }
  try {
    readHeader(encode(deep));
  } catch (error) {
    assert.ok(error instanceof ProtocolError);
  }
  assert.throws(() => readHeader(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
    ProtocolError);
  for (const body of ['{"l":9}x', '{"k":"1"}x', '{"l":-1}x', '{"l":1e3}x', "x"]) {
    assert.throws(() => [...readRecords(encode(body))], ProtocolError, body);
  }
});

test("records of a batch are those that went in", () => {
  const body = encode('{"k":"88","l":8}{"id":1}{"l":0,"k":"9"}');
  const records = [...readRecords(body)].map(([key, one]) => [key, new TextDecoder().decode(one)]);
  assert.deepEqual(records, [["88", '{"id":1}'], ["9", ""]]);
});
