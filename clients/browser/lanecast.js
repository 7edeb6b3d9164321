/**
 * A client of the lanecast content server for browsers, over WebSocket. It has the words of the
 * other clients: connect, publish, flush, subscribe, query, queryAndSubscribe, delete.
 *
 *     const client = await Client.connect("ws://127.0.0.1:9008");
 *     const orders = await client.queryAndSubscribe("orders", { filter: "/qty > 1000" });
 *     for await (const event of orders) console.log(event.kind, event.text);
 *
 * If the connection breaks it connects again, sends what was not acknowledged, if it has a name,
 * and places its subscriptions; each of them then gets an event of the kind `resumed`.
 * The protocol is docs/protocol/command.md of the project: one command to a message.
 *
 * @typedef {object} Settings  Times are in milliseconds.
 * @property {string} [name]  No other client has it at the same time. A client with a name numbers
 *   its messages, and sends those again that the server had not acknowledged.
 * @property {string} [user]
 * @property {string} [password]
 * @property {string} [messageType]  json (if nothing is said), nvfix, fix, xml or binary.
 * @property {"processed"|"persisted"} [acknowledge]  When a published message counts as taken.
 * @property {number} [timeout]  How long connecting and each answer may take.
 * @property {number} [heartbeat]  Ask for a sign of life this often: whole seconds. Not in a page
 *   that may be in the background, whose clocks browsers slow down.
 * @property {number} [delayMax]  The longest wait between two attempts to connect.
 * @property {number} [waitingMax]  How many events may wait in a subscription before it is ended.
 * @property {number} [waitingBytesMax]  How many bytes of their bodies may, but for one event.
 * @property {(state: "connected"|"waiting"|"failed", why: string) => void} [onState]
 * @property {new (url: string) => any} [WebSocket]  Another one than the browser's.
 *
 * @typedef {import("./wire.js").Header} Header
 * @typedef {object} Question
 * @property {string} [filter]
 * @property {string} [orderBy]  Fields such as `/price DESC, /id`.
 * @property {number} [top]  How many records at most.
 * @property {number} [skip]  How many are left out at first.
 * @property {string[]} [keys]
 * @property {string} [options]  Further options, as the protocol writes them.
 */


import { Connection, given } from "./connection.js";
import { Event, Subscription } from "./events.js";
import { ConnectionLost, LanecastError, ProtocolError, Refused } from "./wire.js";
import { encoder, number, writeMessage } from "./wire.js";

export { ConnectionLost, Event, LanecastError, ProtocolError, Refused, Subscription };

/** Records that come together. */
const BATCH = 100;
/** So many messages may be published before the first of them is acknowledged. */
const UNACKNOWLEDGED_MAX = 4096;

/** A client of a content server. Made by `connect`. */
export class Client extends Connection {
  /**
   * Connects to the first server that can be reached, and logs on.
   * @param {string|string[]} servers  Such as `ws://127.0.0.1:9008`.
   * @param {Settings} [settings] @returns {Promise<Client>}
   */
  static async connect(servers, settings = {}) {
    const client = new Client([servers].flat(), settings);
    const tried = [];
    for (const url of client.urls) {
      try {
        await client.open();
        return client;
      } catch (error) {
        if (client.failure !== null) throw client.failure;
        tried.push(`cannot connect to ${url}: ${/** @type {Error} */ (error).message}`);
      }
    }
    client.fail(new LanecastError(tried.join("; ")));
    throw client.failure;
  }

  /**
   * Publishes a message. Whether the server took it shows at a later call, of `flush` at the latest.
   * @param {string} topic @param {string|Uint8Array} body
   * @param {{correlation?: string, key?: string, expiration?: number, delta?: boolean}} [more]
   *   `correlation` is handed on unread; `expiration` is in seconds; with `delta` the body has
   *   only what changes in a record, and its key.
   */
  async publish(topic, body, more = {}) {
    await this.until(() => this.isLoggedOn && this.sent.size < UNACKNOWLEDGED_MAX);
    this.complain();
    const id = String(++this.last);
    const sequence = this.settings.name ? ++this.sequence : 0;
    const fields = given({
      cmd: more.delta ? "delta_publish" : "p", cmd_id: id, topic, correlation_id: more.correlation,
      sow_key: more.key, expiration: more.expiration, seq: sequence || undefined,
      ack_type: this.settings.acknowledge,
    });
    const message = writeMessage(fields, typeof body === "string" ? encoder.encode(body) : body);
    this.sent.set(id, { sequence, message });
    this.socket.send(message);
  }

  /** Waits until the server has done all that it was asked to. */
  async flush() {
    await this.ask("cannot flush", { cmd: "flush", ack_type: "processed,completed" }, "completed");
    await this.until(() => this.sent.size === 0);
    this.complain();
  }

  /**
   * Subscribes to a topic, or to all that hold a pattern such as `^orders`.
   * @param {string} topic @param {{filter?: string, options?: string, delta?: boolean}} [more]
   */
  async subscribe(topic, more = {}) {
    const cmd = more.delta ? "delta_subscribe" : "subscribe";
    return this.follow({ cmd, topic, filter: more.filter, opts: more.options });
  }

  /**
   * Subscribes, beginning with the records that are kept: `record` events, then `current`, then
   * changes without a gap; records that are not among them any more are told as `left`.
   * @param {string} topic
   * @param {Question & {left?: boolean, conflation?: string, delta?: boolean}} [more]
   */
  async queryAndSubscribe(topic, more = {}) {
    const cmd = more.delta ? "sow_and_delta_subscribe" : "sow_and_subscribe";
    const wishes = [more.left === false ? "" : "oof",
      more.conflation ? `conflation=${more.conflation}` : "", more.options ?? ""];
    return this.follow({ ...question(cmd, topic, more), opts: options(wishes) }, true);
  }

  /** @param {string} topic @param {Question} [more] @returns {Promise<Event[]>} the records */
  async query(topic, more = {}) {
    const wishes = [more.skip ? `skip_n=${more.skip}` : "", more.options ?? ""];
    const fields = { ...question("sow", topic, more), opts: options(wishes) };
    const header = given({ ...fields, ack_type: "processed,completed" });
    return (await this.ask(`cannot query ${topic}`, header, "completed")).records;
  }

  /**
   * Removes the records that meet a filter, have one of the keys, or the key fields of a message.
   * @param {string} topic @param {{filter?: string, keys?: string[], like?: string}} doomed
   * @returns {Promise<number>} how many those were
   */
  async delete(topic, { filter, keys, like }) {
    const header = given({
      cmd: "sow_delete", topic, filter, sow_keys: keys?.join(","), ack_type: "stats",
    });
    const body = like === undefined ? undefined : encoder.encode(like);
    const done = await this.ask(`cannot delete from ${topic}`, header, "stats", { body,
      isRepeatable: false });
    return number(done.header, "records_deleted");
  }

  /** Ends the connection. Messages that are not acknowledged may not have arrived. */
  close() {
    this.fail(new LanecastError("the client has been closed"));
  }

  /** @param {Record<string, any>} fields */
  async follow(fields, asks = false) {
    const name = String(this.last + 1);
    const header = given({ ...fields, ack_type: "processed", query_id: asks ? name : undefined,
      sub_id: name });
    const subscription = new Subscription(this, name, header);
    this.subscriptions.set(name, subscription);
    await this.ask(`cannot subscribe to ${header.topic}`, header, "processed", { subscription });
    return subscription;
  }
}

/** @param {string[]} list @returns {string|undefined} */
function options(list) {
  return list.filter((option) => option !== "").join(",") || undefined;
}

/** @param {string} cmd @param {string} topic @param {Question} more */
function question(cmd, topic, { filter, orderBy, top, keys }) {
  return { cmd, topic, batch_size: BATCH, filter, orderby: orderBy, top_n: top,
    sow_keys: keys?.join(",") };
}
