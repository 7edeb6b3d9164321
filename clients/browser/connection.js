/**
 * The connection of a client: it opens it, opens it again when it breaks, and hears what comes.
 *
 * @typedef {import("./wire.js").Header} Header
 * @typedef {import("./lanecast.js").Settings} Settings
 */

import { Event, Subscription } from "./events.js";
import { ConnectionLost, LanecastError, ProtocolError, Refused } from "./wire.js";
import { encoder, number, readHeader, readRecords, writeMessage } from "./wire.js";

const VERSION = "0.1.0";
/** So many signs of life may be missing. */
const MISSED_MAX = 3;
/** The first wait before connecting again; the next ones are longer. */
const FIRST_DELAY = 50;

/**
 * A command, until it is answered.
 * @typedef {object} Task
 * @property {string} what
 * @property {Header} header
 * @property {Uint8Array} [body]
 * @property {string} until  The acknowledgement that ends it.
 * @property {boolean} [isRepeatable]
 * @property {Subscription} [subscription]
 * @property {Event[]} records
 * @property {(header: Record<string, string>) => void} resolve
 * @property {(error: LanecastError) => void} reject
 */

/** What a client does beside its words: commands and their answers, across connections. */
export class Connection {
  /** @param {string[]} urls @param {Settings} settings */
  constructor(urls, settings) {
    this.urls = urls;
    this.settings = { name: "", user: "", password: "", messageType: "json",
      acknowledge: "processed", timeout: 10_000, heartbeat: 0, delayMax: 5_000,
      waitingMax: 100_000, waitingBytesMax: 64 << 20, onState: () => {}, WebSocket: globalThis.WebSocket, ...settings };
    /** @type {any} */
    this.socket = null;
    this.isLoggedOn = false;
    /** @type {LanecastError|null} Why there will be no more connections. */
    this.failure = null;
    this.turn = 0;
    this.delay = FIRST_DELAY;
    /** When the connection was made. */
    this.since = 0;
    this.last = 0;
    this.sequence = 0;
    /** Messages of which the server said that their numbers were had before. */
    this.duplicates = 0;
    this.heard = 0;
    this.why = "";
    /** @type {Map<string, Task>} */
    this.tasks = new Map();
    /** @type {Map<string, Subscription>} */
    this.subscriptions = new Map();
    /** @type {Map<string, {sequence: number, message: Uint8Array}>} Not acknowledged yet. */
    this.sent = new Map();
    /** @type {LanecastError|null} Why an earlier message was not taken. */
    this.refusal = null;
    /** @type {(() => void)[]} */
    this.waiters = [];
    /** @type {any} */
    this.timer = null;
    /** @type {any} */
    this.pulse = null;
  }

  /**
   * @param {string} what @param {Header} header @param {string} until @param {Partial<Task>} [more]
   * @returns {Promise<{header: Record<string, string>, records: Event[]}>}
   */
  ask(what, header, until, more = {}) {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) return reject(this.failure);
      /** @type {Event[]} */
      const records = [];
      /** @type {Task} */
      const task = { what, header, until, records, isRepeatable: true, ...more,
        resolve: (answer) => {
          clearTimeout(timer);
          resolve({ header: answer, records: task.records });
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        } };
      const timer = setTimeout(() => {
        const late = new LanecastError(`${what}: no answer within ${this.settings.timeout} ms`);
        for (const [id, other] of this.tasks) if (other === task) this.tasks.delete(id);
        if (task.subscription !== undefined) this.end(task.subscription, late);
        reject(late);
      }, this.settings.timeout);
      this.write(task);
    });
  }

  /** @param {Task} task */
  write(task) {
    const id = String(++this.last);
    this.tasks.set(id, task);
    const { cmd, ...rest } = task.header;
    /** @type {Header} */
    const fields = { cmd, cmd_id: id, ...rest };
    if (cmd === "sow") fields.query_id = id;
    const message = writeMessage(fields, task.body);
    if (this.isLoggedOn) this.socket.send(message);
    else if (cmd === "logon") this.socket.onopen = () => this.socket.send(message);
  }

  /** Waits for something, for as long as an answer may take. @param {() => boolean} isOver */
  async until(isOver) {
    const end = Date.now() + this.settings.timeout;
    while (!isOver()) {
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

  moved() {
    for (const waiter of this.waiters.splice(0)) waiter();
  }

  complain() {
    if (this.failure !== null) throw this.failure;
    const refusal = this.refusal;
    this.refusal = null;
    if (refusal !== null) throw refusal;
  }

  /** Connects to the next server, logs on, and goes on where the last connection ended. */
  async open() {
    const url = this.urls[this.turn++ % this.urls.length];
    const socket = (this.socket = new this.settings.WebSocket(url));
    socket.binaryType = "arraybuffer";
    socket.onmessage = (/** @type {any} */ message) => this.receive(socket, message.data);
    socket.onclose = () => this.lose(socket, "the connection has ended");
    const { name, user, password, messageType } = this.settings;
    const header = given({ cmd: "logon", ack_type: "processed", client_name: name || undefined,
      user_id: user || undefined, password: password || undefined, version: VERSION,
      message_type: messageType });
    try {
      const logon = await this.ask("cannot log on", header, "processed", { isRepeatable: false });
      this.resume(number(logon.header, "seq"));
    } catch (error) {
      if (error instanceof Refused || error instanceof ProtocolError) this.fail(error);
      else this.lose(socket, /** @type {Error} */ (error).message);
      throw error;
    }
    this.since = Date.now();
    this.settings.onState("connected", url);
  }

  /** @param {number} sequence  The last number that the server has of this client. */
  resume(sequence) {
    this.isLoggedOn = true;
    this.sequence = Math.max(this.sequence, sequence);
    for (const [id, { sequence: one, message }] of this.sent) {
      if (one <= sequence && this.settings.acknowledge === "processed") this.sent.delete(id);
      else this.socket.send(message);
    }
    const tasks = [...this.tasks.values()];
    this.tasks.clear();
    for (const subscription of this.subscriptions.values()) {
      if (!subscription.hasBegun) continue;
      subscription.put(new Event("resumed", "", "", undefined, this.why));
      const { header } = subscription, what = `cannot subscribe to ${header.topic}`;
      this.write({ what, header, until: "processed", isRepeatable: true, subscription,
        records: [], resolve: () => {}, reject: () => {} });
    }
    for (const task of tasks) {
      if (task.subscription?.hasBegun) continue;
      task.records.length = 0;
      this.write(task);
    }
    this.beat();
    this.moved();
  }

  /** Starts signs of life, if they are wanted, and looks after them. */
  beat() {
    const every = this.settings.heartbeat;
    if (!every) return;
    const opts = `start,${Math.ceil(every / 1000)}`, cmd_id = String(++this.last);
    this.socket.send(writeMessage({ cmd: "heartbeat", cmd_id, opts, ack_type: "processed" }));
    const socket = this.socket;
    this.pulse = setInterval(() => {
      if (Date.now() - this.heard > every * MISSED_MAX) this.lose(socket, "the server is silent");
      else socket.send(writeMessage({ cmd: "heartbeat", opts: "beat" }));
    }, every / 2);
  }

  /** The connection has ended. @param {any} socket @param {string} why */
  lose(socket, why) {
    if (socket !== this.socket) return;
    const wasLoggedOn = this.isLoggedOn;
    this.drop();
    this.why = why;
    for (const [id, task] of this.tasks) {
      if (task.isRepeatable) continue;
      this.tasks.delete(id);
      task.reject(new ConnectionLost(`${task.what}: ${why}; it may have been done`));
    }
    if (this.sent.size > 0 && !this.settings.name) {
      this.refusal ??= new ConnectionLost(`${why}: ${this.sent.size} published messages had not ` +
        "been acknowledged and may be lost; a client with a name sends them again");
      this.sent.clear();
    }
    this.settings.onState("waiting", why);
    if (!wasLoggedOn) return;
    // Or a server that ends each connection after the logon would be asked at once, for ever.
    if (Date.now() - this.since >= this.settings.delayMax) this.delay = FIRST_DELAY;
    this.reconnect();
  }

  /** Connects again, and again if that does not work. */
  async reconnect() {
    while (this.failure === null && !this.isLoggedOn) {
      const wait = this.delay * (0.5 + Math.random() / 2);
      this.delay = Math.min(this.delay * 2, this.settings.delayMax);
      await new Promise((resolve) => (this.timer = setTimeout(resolve, wait)));
      // Why it does not work is told by the state.
      await this.open().catch(() => {});
    }
  }

  /** There will be no more connections. @param {LanecastError} error */
  fail(error) {
    if (this.failure !== null) return;
    this.failure = error;
    this.drop();
    for (const task of this.tasks.values()) task.reject(error);
    this.tasks.clear();
    for (const subscription of this.subscriptions.values()) subscription.stop(error);
    this.subscriptions.clear();
    this.moved();
    this.settings.onState("failed", error.message);
  }

  drop() {
    clearTimeout(this.timer);
    clearInterval(this.pulse);
    this.isLoggedOn = false;
    const socket = this.socket;
    this.socket = null;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  // What is heard.

  /** @param {any} socket @param {ArrayBuffer|string} data */
  receive(socket, data) {
    if (socket !== this.socket) return;
    this.heard = Date.now();
    try {
      this.hear(typeof data === "string" ? encoder.encode(data) : new Uint8Array(data));
    } catch (error) {
      this.fail(/** @type {LanecastError} */ (error));
    }
  }

  /** @param {Uint8Array} message */
  hear(message) {
    if (message.length === 0) return;
    const [header, at] = readHeader(message);
    const { cmd, topic = "", query_id = "", sow_key = "" } = header;
    if (cmd === "p" || cmd === "publish" || cmd === "oof") {
      const kind = cmd === "oof" ? "left" : "message";
      const event = new Event(kind, topic, sow_key, message.slice(at), header.reason);
      for (const name of (header.sids ?? header.sub_id ?? "").split(",")) this.tell(name, event);
    } else if (cmd === "sow") {
      for (const [key, body] of readRecords(message.subarray(at))) {
        const record = new Event("record", topic, key, body);
        this.tasks.get(query_id)?.records.push(record);
        this.tell(query_id, record);
      }
    } else if (cmd === "group_end") {
      this.tell(query_id, new Event("current"));
    } else if (cmd === "ack") {
      this.answered(header);
    } else if (cmd !== "group_begin" && cmd !== "heartbeat") {
      throw new ProtocolError(`${cmd} is no command of a server`);
    }
  }

  /** @param {string} name @param {Event} event */
  tell(name, event) {
    const subscription = this.subscriptions.get(name);
    if (subscription === undefined) return;
    const { waitingMax, waitingBytesMax } = this.settings;
    const { events, bytes } = subscription;
    if (events.length < waitingMax && bytes < waitingBytesMax) return subscription.put(event);
    const wait = events.length < waitingMax ? `${bytes} bytes` : `${waitingMax} events`;
    this.end(subscription, new LanecastError(`${wait} wait: it has been ended`));
  }

  /** @param {Record<string, string>} header */
  answered(header) {
    const { cmd_id: id = "", ack_type: ack, reason = "no reason" } = header;
    const hasFailed = header.status !== "success";
    const task = this.tasks.get(id);
    if (task !== undefined) {
      if (!hasFailed && ack !== task.until) return;
      this.tasks.delete(id);
      if (task.subscription !== undefined) task.subscription.hasBegun = true;
      if (!hasFailed) return task.resolve(header);
      const refused = new Refused(task.what, reason);
      if (task.subscription !== undefined) this.end(task.subscription, refused);
      task.reject(refused);
    } else if (this.sent.has(id) && (hasFailed || ack === this.settings.acknowledge)) {
      this.sent.delete(id);
      if (!hasFailed && reason.startsWith("duplicate")) this.duplicates += 1;
      if (hasFailed) this.refusal ??= new Refused(`cannot publish (command ${id})`, reason);
    } else if (ack === "persisted" && id === "" && !hasFailed) {
      const upTo = number(header, "seq");
      for (const [key, { sequence }] of this.sent) {
        if (sequence > 0 && sequence <= upTo) this.sent.delete(key);
      }
    }
    this.moved();
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

/** The fields that are there. @param {Record<string, any>} fields @returns {Header} */
export function given(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
