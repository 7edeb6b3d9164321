/**
 * The connection of a client: opens it, reconnects after a loss, and dispatches received commands.
 *
 * @typedef {import("./wire.js").Header} Header
 * @typedef {import("./lanecast.js").Settings} Settings
 */

import { Event, Subscription } from "./events.js";
import { ConnectionLost, LanecastError, NameTaken, OtherVersion, ProtocolError, Refused } from "./wire.js";
import { encoder, number, PROTOCOL_VERSION, readHeader, readRecords, writeMessage } from "./wire.js";

const VERSION = "0.1.0";
/** Missed heartbeats after which the connection counts as lost. */
const MISSED_MAX = 3;
/** The longest wait, a day in milliseconds. Timers of browsers fire at once beyond 24 days. */
const WAIT_MAX = 24 * 60 * 60 * 1000;
/** First wait before reconnecting, in milliseconds; it doubles each time. */
const FIRST_DELAY = 50;

/**
 * A command and its acknowledgement, pending or complete.
 * @typedef {object} Request
 * @property {string} what
 * @property {Header} header
 * @property {Uint8Array} [body]
 * @property {string} until  The acknowledgement that ends it.
 * @property {boolean} [isRepeatable]
 * @property {Subscription} [subscription]
 * @property {Event[]} records
 * @property {number} bytes  Bytes of the bodies of these records.
 * @property {(header: Record<string, string>) => void} resolve
 * @property {(error: LanecastError) => void} reject
 */

/** State of a client across its connections: pending requests, subscriptions, unacknowledged messages. */
export class Connection {
  /** @param {string[]} urls @param {Settings} settings */
  constructor(urls, settings) {
    this.urls = urls;
    this.settings = { name: "", user: "", password: "", messageType: "json",
      acknowledge: "processed", timeout: 10_000, heartbeat: 0, delayMax: 5_000,
      waitingMax: 100_000, waitingBytesMax: 64 << 20, onState: () => {}, WebSocket: globalThis.WebSocket, ...settings };
    for (const wait of ["timeout", "heartbeat", "delayMax"]) {
      const value = this.settings[/** @type {"timeout"|"heartbeat"|"delayMax"} */ (wait)] ?? 0;
      if (!(value >= 0 && value <= WAIT_MAX)) {
        throw new LanecastError(`${wait} is not from 0 to ${WAIT_MAX} ms, a day`);
      }
    }
    /** @type {any} */
    this.socket = null;
    this.isLoggedOn = false;
    /** @type {LanecastError|null} The error that ended the client for good. */
    this.failure = null;
    this.nextServer = 0;
    this.delay = FIRST_DELAY;
    /** When the connection was made. */
    this.since = 0;
    this.last = 0;
    /** The time in microseconds: above the numbers of an earlier client of this name. */
    this.sequence = Date.now() * 1000;
    this.hasBeenConnected = false;
    /** Messages that the server acknowledged as duplicates. */
    this.duplicates = 0;
    this.lastReceive = 0;
    this.why = "";
    /** @type {Map<string, Request>} */
    this.requests = new Map();
    /** @type {Map<string, Subscription>} */
    this.subscriptions = new Map();
    /** Messages that were published, by which errors number them, from 1 on. */
    this.published = 0;
    /**
     * @type {Map<string, {number: number, sequence: number, message: Uint8Array}>}
     *   Messages without an acknowledgement.
     */
    this.sent = new Map();
    /** @type {LanecastError|null} The refusal of an earlier message. */
    this.refusal = null;
    /** @type {(() => void)[]} */
    this.waiters = [];
    /** @type {any} */
    this.timer = null;
    /** @type {any} */
    this.heartbeatTimer = null;
  }

  /**
   * @param {string} what @param {Header} header @param {string} until @param {Partial<Request>} [more]
   * @returns {Promise<{header: Record<string, string>, records: Event[]}>}
   */
  ask(what, header, until, more = {}) {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) return reject(this.failure);
      /** @type {Event[]} */
      const records = [];
      /** @type {Request} */
      const request = { what, header, until, records, bytes: 0, isRepeatable: true, ...more,
        resolve: (answer) => {
          clearTimeout(timer);
          resolve({ header: answer, records: request.records });
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        } };
      const timer = setTimeout(() => {
        const late = new LanecastError(`${what}: no answer within ${this.settings.timeout} ms`);
        for (const [id, other] of this.requests) if (other === request) this.requests.delete(id);
        if (request.subscription !== undefined) this.end(request.subscription, late);
        reject(late);
      }, this.settings.timeout);
      this.write(request);
    });
  }

  /** @param {Request} request */
  write(request) {
    const id = String(++this.last);
    this.requests.set(id, request);
    const { cmd, ...rest } = request.header;
    /** @type {Header} */
    const fields = { cmd, cmd_id: id, ...rest };
    if (cmd === "sow") fields.query_id = id;
    const message = writeMessage(fields, request.body);
    if (this.isLoggedOn) this.socket.send(message);
    else if (cmd === "logon") this.socket.onopen = () => this.socket.send(message);
  }

  /** Waits until `isDone`, for at most the timeout of an answer. @param {() => boolean} isDone */
  async until(isDone) {
    const end = Date.now() + this.settings.timeout;
    while (!isDone()) {
      if (this.failure !== null) throw this.failure;
      const rest = end - Date.now();
      if (rest <= 0) {
        throw new LanecastError(`cannot publish: no answer within ${this.settings.timeout} ms`);
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, rest);
        this.waiters.push(() => (clearTimeout(timer), resolve(null)));
      });
    }
  }

  progress() {
    for (const waiter of this.waiters.splice(0)) waiter();
  }

  raiseRefusal() {
    if (this.failure !== null) throw this.failure;
    const refusal = this.refusal;
    this.refusal = null;
    if (refusal !== null) throw refusal;
  }

  /** Connects to the next server, logs on, and continues where the last connection ended. */
  async open() {
    const url = this.urls[this.nextServer++ % this.urls.length];
    const socket = (this.socket = new this.settings.WebSocket(url));
    socket.binaryType = "arraybuffer";
    socket.onmessage = (/** @type {any} */ message) => this.receive(socket, message.data);
    socket.onclose = () => this.disconnected(socket, "the connection has ended");
    const { name, user, password, messageType } = this.settings;
    const header = given({ cmd: "logon", ack_type: "processed", client_name: name || undefined,
      user_id: user || undefined, password: password || undefined, version: VERSION,
      message_type: messageType, protocol_version: PROTOCOL_VERSION });
    try {
      const logon = await this.ask("cannot log on", header, "processed", { isRepeatable: false });
      // A server that leaves it out speaks the first version.
      const server = number({ protocol_version: "1", ...logon.header }, "protocol_version");
      if (server !== PROTOCOL_VERSION) throw new OtherVersion("cannot log on", server);
      const sequence = number(logon.header, "seq");
      if (this.hasBeenConnected && sequence > this.sequence) throw new NameTaken(name);
      this.resume(sequence);
    } catch (error) {
      const isFinal = [NameTaken, OtherVersion, ProtocolError, Refused].some((kind) => error instanceof kind);
      if (isFinal) this.fail(/** @type {LanecastError} */ (error));
      else this.disconnected(socket, /** @type {Error} */ (error).message);
      throw error;
    }
    this.since = Date.now();
    this.reportState("connected", url);
  }

  /** @param {number} sequence  The last sequence number that the server has of this client. */
  resume(sequence) {
    this.isLoggedOn = this.hasBeenConnected = true;
    this.sequence = Math.max(this.sequence, sequence);
    for (const [id, { sequence: one, message }] of this.sent) {
      if (one <= sequence && this.settings.acknowledge === "processed") this.sent.delete(id);
      else this.socket.send(message);
    }
    const requests = [...this.requests.values()];
    this.requests.clear();
    for (const subscription of this.subscriptions.values()) {
      if (!subscription.hasDelivered) continue;
      subscription.put(new Event("resumed", "", "", undefined, this.why));
      const { header } = subscription, what = `cannot subscribe to ${header.topic}`;
      this.write({ what, header, until: "processed", isRepeatable: true, subscription,
        records: [], bytes: 0, resolve: () => {}, reject: () => {} });
    }
    for (const request of requests) {
      if (request.subscription?.hasDelivered) continue;
      request.records.length = request.bytes = 0;
      this.write(request);
    }
    this.startHeartbeats();
    this.progress();
  }

  /** Starts heartbeats, if configured, and checks those of the server. */
  startHeartbeats() {
    const every = this.settings.heartbeat;
    if (!every) return;
    const opts = `start,${Math.ceil(every / 1000)}`, cmd_id = String(++this.last);
    this.socket.send(writeMessage({ cmd: "heartbeat", cmd_id, opts, ack_type: "processed" }));
    const socket = this.socket;
    this.heartbeatTimer = setInterval(() => {
      if (Date.now() - this.lastReceive > every * MISSED_MAX) this.disconnected(socket, "the server is silent");
      else socket.send(writeMessage({ cmd: "heartbeat", opts: "beat" }));
    }, every / 2);
  }

  /** Handles the end of the connection. @param {any} socket @param {string} why */
  disconnected(socket, why) {
    if (socket !== this.socket) return;
    const wasLoggedOn = this.isLoggedOn;
    this.drop();
    this.why = why;
    for (const [id, request] of this.requests) {
      if (request.isRepeatable) continue;
      this.requests.delete(id);
      request.reject(new ConnectionLost(`${request.what}: ${why}; it may have been done`));
    }
    if (this.sent.size > 0 && !this.settings.name) {
      this.refusal ??= new ConnectionLost(`${why}: ${this.sent.size} published messages had not ` +
        "been acknowledged and may be lost; a client with a name sends them again");
      this.sent.clear();
    }
    this.reportState("waiting", why);
    if (!wasLoggedOn) return;
    // Otherwise a server that ends each connection after the logon would be asked without a pause.
    if (Date.now() - this.since >= this.settings.delayMax) this.delay = FIRST_DELAY;
    this.reconnect();
  }

  /** Reconnects until it succeeds or the client fails. */
  async reconnect() {
    while (this.failure === null && !this.isLoggedOn) {
      const wait = this.delay * (0.5 + Math.random() / 2);
      this.delay = Math.min(this.delay * 2, this.settings.delayMax);
      await new Promise((resolve) => (this.timer = setTimeout(resolve, wait)));
      // `onState` reports the reason of a failure.
      await this.open().catch(() => {});
    }
  }

  /** Ends the client for good. @param {LanecastError} error */
  fail(error) {
    if (this.failure !== null) return;
    this.failure = error;
    this.drop();
    for (const request of this.requests.values()) request.reject(error);
    this.requests.clear();
    for (const subscription of this.subscriptions.values()) subscription.stop(error);
    this.subscriptions.clear();
    this.progress();
    this.reportState("failed", error.message);
  }

  /** Calls `onState`; an error of it does not stop the client. @param {string} state @param {string} why */
  reportState(state, why) {
    try {
      this.settings.onState(/** @type {any} */ (state), why);
    } catch (error) {
      console.error("onState has failed:", error);
    }
  }

  drop() {
    clearTimeout(this.timer);
    clearInterval(this.heartbeatTimer);
    this.isLoggedOn = false;
    const socket = this.socket;
    this.socket = null;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  // Commands from the server.

  /** @param {any} socket @param {ArrayBuffer|string} data */
  receive(socket, data) {
    if (socket !== this.socket) return;
    this.lastReceive = Date.now();
    try {
      this.dispatch(typeof data === "string" ? encoder.encode(data) : new Uint8Array(data));
    } catch (error) {
      this.fail(/** @type {LanecastError} */ (error));
    }
  }

  /** @param {Uint8Array} message */
  dispatch(message) {
    if (message.length === 0) return;
    const [header, at] = readHeader(message);
    const { cmd, topic = "", query_id = "", sow_key = "" } = header;
    if (cmd === "p" || cmd === "publish" || cmd === "oof") {
      const kind = cmd === "oof" ? "outOfFocus" : "message";
      const event = new Event(kind, topic, sow_key, message.slice(at), header.reason);
      for (const name of (header.sids ?? header.sub_id ?? "").split(",")) this.deliver(name, event);
    } else if (cmd === "sow") {
      for (const [key, body] of readRecords(message.subarray(at))) {
        const record = new Event("record", topic, key, body);
        this.answer(query_id, record);
        this.deliver(query_id, record);
      }
    } else if (cmd === "group_end") {
      this.deliver(query_id, new Event("current"));
    } else if (cmd === "ack") {
      this.complete(header);
    } else if (cmd !== "group_begin" && cmd !== "heartbeat") {
      throw new ProtocolError(`${cmd} is no command of a server`);
    }
  }

  /**
   * Adds a record to the answer of a query. The call takes all of it at once, so that a query fails
   * whose answer is too long; the server sends the rest, too.
   * @param {string} id @param {Event} record
   */
  answer(id, record) {
    const request = this.requests.get(id);
    if (request === undefined) return;
    request.records.push(record);
    request.bytes += record.body.length;
    const { waitingMax, waitingBytesMax } = this.settings;
    if (request.records.length <= waitingMax && request.bytes <= waitingBytesMax) return;
    const limit = request.bytes > waitingBytesMax ? `${waitingBytesMax} bytes` : `${waitingMax} records`;
    this.requests.delete(id);
    request.reject(new LanecastError(`${request.what}: the answer has more than ${limit}: ask for ` +
      "fewer records, by a filter, top and skip, or raise waitingMax and waitingBytesMax"));
  }

  /** @param {string} name @param {Event} event */
  deliver(name, event) {
    const subscription = this.subscriptions.get(name);
    if (subscription === undefined) return;
    const { waitingMax, waitingBytesMax } = this.settings;
    const { events, bytes } = subscription;
    if (events.length < waitingMax && bytes < waitingBytesMax) return subscription.put(event);
    const wait = events.length < waitingMax ? `${bytes} bytes` : `${waitingMax} events`;
    this.end(subscription, new LanecastError(`${wait} unread: the subscription has ended`));
  }

  /** @param {Record<string, string>} header */
  complete(header) {
    const { cmd_id: id = "", ack_type: ack, reason = "no reason" } = header;
    const hasFailed = header.status !== "success";
    const request = this.requests.get(id);
    if (request !== undefined) {
      if (!hasFailed && ack !== request.until) return;
      this.requests.delete(id);
      if (request.subscription !== undefined) request.subscription.hasDelivered = true;
      if (!hasFailed) return request.resolve(header);
      const refused = new Refused(request.what, reason);
      if (request.subscription !== undefined) this.end(request.subscription, refused);
      request.reject(refused);
    } else if (this.sent.has(id) && (hasFailed || ack === this.settings.acknowledge)) {
      const which = this.sent.get(id)?.number;
      this.sent.delete(id);
      if (!hasFailed && reason.startsWith("duplicate")) this.duplicates += 1;
      if (hasFailed) this.refusal ??= new Refused(`cannot publish message ${which}`, reason);
    } else if (hasFailed && ack === "completed" && this.subscriptions.has(header.query_id)) {
      // The server cannot sort the records that the subscription would begin with.
      const subscription = /** @type {Subscription} */ (this.subscriptions.get(header.query_id));
      this.end(subscription, new Refused(`cannot subscribe to ${subscription.header.topic}`, reason));
    } else if (ack === "persisted" && id === "" && !hasFailed) {
      const upTo = number(header, "seq");
      for (const [key, { sequence }] of this.sent) {
        if (sequence > 0 && sequence <= upTo) this.sent.delete(key);
      }
    }
    this.progress();
  }

  /** Ends a subscription. @param {Subscription} subscription @param {LanecastError|null} error */
  end(subscription, error) {
    if (!this.subscriptions.delete(subscription.name)) return;
    subscription.stop(error);
    if (!this.isLoggedOn || error instanceof Refused) return;
    const cmd_id = String(++this.last);
    this.socket.send(writeMessage({ cmd: "unsubscribe", cmd_id, sub_id: subscription.name }));
  }
}

/** Removes undefined fields. @param {Record<string, any>} fields @returns {Header} */
export function given(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
