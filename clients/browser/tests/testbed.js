/** A server that a test plays: sockets that go nowhere, and what was sent on them. */

import { readHeader, writeMessage } from "../wire.js";

/** What a test waits for comes within this time, in milliseconds. */
const PATIENCE = 30_000;

/** Sockets of one kind: their server answers by `play(socket, header, body)`. */
export function sockets(play) {
  const opened = [];
  class Socket {
    constructor(url) {
      this.url = url;
      this.said = [];
      opened.push(this);
      queueMicrotask(() => this.onopen?.());
    }
    send(message) {
      const [header, at] = readHeader(message);
      const body = new TextDecoder().decode(message.subarray(at));
      this.said.push([header, body]);
      // As over a wire: what is answered comes later.
      setTimeout(() => this.onmessage && play(this, header, body));
    }
    /** The server says something. */
    say(fields, body = "") {
      const message = writeMessage(fields, new TextEncoder().encode(body));
      this.onmessage?.({ data: message.buffer });
    }
    /** The server acknowledges a command. */
    ack(header, more = {}) {
      const { cmd_id } = header;
      for (const ack_type of (header.ack_type ?? "").split(",").filter(Boolean)) {
        this.say({ cmd: "ack", ack_type, status: "success", cmd_id, ...more });
      }
    }
    /** The connection breaks. */
    cut() {
      this.onclose?.();
    }
    close() {
      this.isClosed = true;
    }
  }
  return { Socket, opened };
}

/** Waits until something is so. */
export async function until(isSo) {
  for (const end = Date.now() + PATIENCE; !isSo(); ) {
    if (Date.now() > end) throw new Error(`in vain: ${isSo}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** The commands that were sent on a socket, by their names. */
export function commands(socket) {
  return socket.said.map(([header]) => header.cmd);
}
