/**
 * A client of the lanecast content server for browsers, over WebSocket. It has the methods of
 * the other clients: connect, publish, flush, subscribe, query, queryAndSubscribe, delete.
 *
 *     const client = await Client.connect("ws://127.0.0.1:9008");
 *     const orders = await client.queryAndSubscribe("orders", { filter: "/qty > 1000" });
 *     for await (const event of orders) console.log(event.kind, event.text);
 *
 * After a lost connection it reconnects, sends unacknowledged messages again if it has a name, and
 * places its subscriptions anew; each of them then gets an event of the kind `resumed`.
 * The protocol is docs/protocol/command.md of the project: one command to a message.
 *
 * @typedef {object} Settings  Times are in milliseconds.
 * @property {string} [name]  The client's name; two connected clients cannot share one. A client with
 *   a name numbers its messages and sends unacknowledged ones again.
 * @property {string} [user]
 * @property {string} [password]
 * @property {string} [messageType]  json (the default), nvfix, fix, xml or binary.
 * @property {"processed"|"persisted"} [acknowledge]  The acknowledgement that completes a published message.
 * @property {number} [timeout]  Longest time for connecting and for each answer: a day at most, like
 *   the other times.
 * @property {number} [heartbeat]  Interval of heartbeats, whole seconds. Leave it out in pages that
 *   may be in the background, where browsers slow down timers.
 * @property {number} [delayMax]  The longest wait between two attempts to connect.
 * @property {number} [waitingMax]  Most unread events of a subscription; more ends it. Also the most
 *   records of an answer to a query; more fails it.
 * @property {number} [waitingBytesMax]  Most unread bytes of their bodies, except for one event; most
 *   bytes of the records of an answer.
 * @property {(state: "connected"|"waiting"|"failed", why: string) => void} [onState]
 * @property {new (url: string) => any} [WebSocket]  Replaces the browser's WebSocket.
 *
 * @typedef {import("./wire.js").Header} Header
 * @typedef {object} Query
 * @property {string} [filter]
 * @property {string} [orderBy]  Fields such as `/price DESC, /id`.
 * @property {number} [top]  Most records.
 * @property {number} [skip]  Records to skip first.
 * @property {string[]} [keys]
 * @property {string} [options]  Further options, as the protocol writes them.
 */


import { Connection, given } from "./connection.js";
import { Event, Subscription } from "./events.js";
import { ConnectionLost, LanecastError, NameTaken, OtherVersion, ProtocolError, Refused } from "./wire.js";
import { encoder, number, writeMessage } from "./wire.js";

export { ConnectionLost, Event, LanecastError, NameTaken, OtherVersion, ProtocolError, Refused, Subscription };

/** Records in one `sow` message of an answer. */
const BATCH = 100;
/** Most published messages without an acknowledgement. */
const UNACKNOWLEDGED_MAX = 4096;

/** A client of a content server. Made by `connect`. */
export class Client extends Connection {
  /**
   * Connects to the first reachable server and logs on.
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
   * Publishes a message. A later call raises its refusal, `flush` at the latest.
   * @param {string} topic @param {string|Uint8Array} body
   * @param {{correlation?: string, key?: string, expiration?: number, delta?: boolean}} [more]
   *   `correlation` is passed on unread; `expiration` is in seconds; with `delta` the body has
   *   only the changed fields of a record and its key fields.
   */
  async publish(topic, body, more = {}) {
    const hasRoom = () => this.isLoggedOn && this.sent.size < UNACKNOWLEDGED_MAX;
    // Other calls that waited, too, may have taken the room before this one goes on.
    while (!hasRoom()) await this.until(hasRoom);
    this.raiseRefusal();
    const id = String(++this.last);
    const sequence = this.settings.name ? ++this.sequence : 0;
    const fields = given({
      cmd: more.delta ? "delta_publish" : "p", cmd_id: id, topic, correlation_id: more.correlation,
      sow_key: more.key, expiration: more.expiration, seq: sequence || undefined,
      ack_type: this.settings.acknowledge,
    });
    const message = writeMessage(fields, typeof body === "string" ? encoder.encode(body) : body);
    this.sent.set(id, { number: ++this.published, sequence, message });
    this.socket.send(message);
  }

  /** Waits until the server has executed all requests. */
  async flush() {
    await this.ask("cannot flush", { cmd: "flush", ack_type: "processed,completed" }, "completed");
    await this.until(() => this.sent.size === 0);
    this.raiseRefusal();
  }

  /**
   * Subscribes to a topic, or to all topics that match a pattern such as `^orders`.
   * @param {string} topic @param {{filter?: string, options?: string, delta?: boolean}} [more]
   */
  async subscribe(topic, more = {}) {
    const cmd = more.delta ? "delta_subscribe" : "subscribe";
    return this.placeSubscription({ cmd, topic, filter: more.filter, opts: more.options });
  }

  /**
   * Delivers the stored records as `record` events, then `current`, then changes without a gap;
   * records that no longer match are `outOfFocus` events.
   * @param {string} topic
   * @param {Query & {outOfFocus?: boolean, conflation?: string, delta?: boolean}} [more]
   */
  async queryAndSubscribe(topic, more = {}) {
    const cmd = more.delta ? "sow_and_delta_subscribe" : "sow_and_subscribe";
    const optionList = [more.outOfFocus === false ? "" : "oof",
      more.conflation ? `conflation=${more.conflation}` : "", more.options ?? ""];
    return this.placeSubscription({ ...queryHeader(cmd, topic, more), opts: options(optionList) }, true);
  }

  /** @param {string} topic @param {Query} [more] @returns {Promise<Event[]>} the records */
  async query(topic, more = {}) {
    const optionList = [more.skip ? `skip_n=${more.skip}` : "", more.options ?? ""];
    const fields = { ...queryHeader("sow", topic, more), opts: options(optionList) };
    const header = given({ ...fields, ack_type: "processed,completed" });
    return (await this.ask(`cannot query ${topic}`, header, "completed")).records;
  }

  /**
   * Deletes records by filter, by keys, or by the key fields of a message.
   * @param {string} topic @param {{filter?: string, keys?: string[], like?: string}} selection
   * @returns {Promise<number>} the number of deleted records
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

  /**
   * Closes the connection. The browser sends what was published before, but tells of no failure:
   * await `flush` first.
   */
  close() {
    this.fail(new LanecastError("the client has been closed"));
  }

  /** @param {Record<string, any>} fields */
  async placeSubscription(fields, isQuery = false) {
    const name = String(this.last + 1);
    const header = given({ ...fields, ack_type: "processed", query_id: isQuery ? name : undefined,
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

/** @param {string} cmd @param {string} topic @param {Query} more */
function queryHeader(cmd, topic, { filter, orderBy, top, keys }) {
  return { cmd, topic, batch_size: BATCH, filter, orderby: orderBy, top_n: top,
    sow_keys: keys?.join(",") };
}
