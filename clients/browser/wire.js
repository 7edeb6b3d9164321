/**
 * Headers, bodies and records as bytes: docs/protocol/command.md of the project. Whatever is read
 * may be hostile: what makes no sense is a `ProtocolError`.
 *
 * @typedef {Record<string, string|number>} Header
 */

const HEADER_MAX = 256 << 10;
/** Version of the protocol. Clients and servers refuse others at the logon. */
export const PROTOCOL_VERSION = 1;

/** Fields by their long names: as they are written, and how else they may be spelled. */
const FIELDS = {
  cmd: ["c"], cmd_id: ["cid"], topic: ["t"], seq: ["s"], ack_type: ["a"], filter: ["filter", "f"],
  opts: ["opts", "o"], sow_key: ["k"], msg_len: ["l"], batch_size: ["bs"], expiration: ["e"],
  correlation_id: ["x"], password: ["pw"], message_type: ["mt"], version: ["version", "v"],
  sub_id: ["sub_id"], sids: ["sids"], query_id: ["query_id"], status: ["status"],
  reason: ["reason"], top_n: ["top_n"], orderby: ["orderby"], sow_keys: ["sow_keys"],
  client_name: ["client_name"], user_id: ["user_id"], records_deleted: ["records_deleted"],
  protocol_version: ["protocol_version"],
};
/** @type {Map<string, string>} */
const LONG = new Map();
for (const [long, spellings] of Object.entries(FIELDS)) {
  for (const name of [long, ...spellings]) LONG.set(name, long);
}
export const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true });

/** The root of all errors of this module. */
export class LanecastError extends Error {}
/** The server does not do it: `reason` says why. */
export class Refused extends LanecastError {
  /** @param {string} what @param {string} reason */
  constructor(what, reason) {
    super(`${what}: the server says: ${reason}`);
    this.reason = reason;
  }
}
/** The server speaks another version of the protocol: `server` says which. */
export class OtherVersion extends LanecastError {
  /** @param {string} what @param {number} server */
  constructor(what, server) {
    super(`${what}: the server speaks version ${server} of the command protocol, this client ` +
      `version ${PROTOCOL_VERSION}: use one version of lanecast at both ends`);
    this.server = server;
  }
}
/** Another program publishes under the same name. */
export class NameTaken extends LanecastError {
  /** @param {string} name */
  constructor(name) {
    super(`another program publishes as ${name}: give each a name of its own, or the server takes ` +
      "their messages for repetitions");
  }
}
/** What the server sent makes no sense. The connection has been closed. */
export class ProtocolError extends LanecastError {}
/** The connection has ended, and what was asked for may or may not have been done. */
export class ConnectionLost extends LanecastError {}

/** @param {Header} fields @param {Uint8Array} [body] @returns {Uint8Array} */
export function writeMessage(fields, body = new Uint8Array()) {
  const parts = Object.entries(fields).map(([long, value]) => {
    const [name] = FIELDS[/** @type {keyof FIELDS} */ (long)];
    return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  });
  const header = encoder.encode(`{${parts.join(",")}}`);
  const message = new Uint8Array(header.length + body.length);
  message.set(header);
  message.set(body, header.length);
  return message;
}

/**
 * The header that begins at byte `at`, by long names, and where the body begins.
 * @param {Uint8Array} bytes @returns {[Record<string, string>, number]}
 */
export function readHeader(bytes, at = 0) {
  let depth = 0, isQuoted = false, end = at;
  const limit = Math.min(bytes.length, at + HEADER_MAX);
  if (bytes[at] !== 0x7b) throw new ProtocolError(`at byte ${at}: a header begins with {`);
  do {
    if (end >= limit) throw new ProtocolError("a header is too long, or has no end");
    const byte = bytes[end++];
    if (isQuoted && byte === 0x5c) end++;
    else if (byte === 0x22) isQuoted = !isQuoted;
    else if (!isQuoted && (byte === 0x7b || byte === 0x5b)) depth++;
    else if (!isQuoted && (byte === 0x7d || byte === 0x5d)) depth--;
  } while (depth > 0);
  /** @type {Record<string, string>} */
  const header = Object.create(null);
  let values;
  try {
    values = JSON.parse(strict.decode(bytes.subarray(at, end)));
  } catch (error) {
    throw new ProtocolError(`a header makes no sense: ${error}`);
  }
  for (const [name, value] of Object.entries(values)) {
    const long = LONG.get(name);
    if (long === undefined) continue;
    if (long in header) throw new ProtocolError(`${long} is there twice`);
    if (typeof value === "object") throw new ProtocolError(`${long} has a value without sense`);
    header[long] = String(value);
  }
  return [header, end];
}

/** @param {Record<string, string>} header @param {string} name @returns {number} */
export function number(header, name) {
  const text = header[name] ?? "0";
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new ProtocolError(`${name} has a value without sense`);
  }
  return value;
}

/** @param {Uint8Array} body @returns {Generator<[string, Uint8Array]>} keys and bodies */
export function* readRecords(body) {
  for (let at = 0; at < body.length; ) {
    const [header, start] = readHeader(body, at);
    at = start + number(header, "msg_len");
    if (header.msg_len === undefined || at > body.length) {
      throw new ProtocolError("a record does not say how long it is, or is longer than its message");
    }
    yield [header.sow_key ?? "", body.slice(start, at)];
  }
}
