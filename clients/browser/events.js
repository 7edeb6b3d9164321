/**
 * Events and subscriptions.
 *
 * @typedef {import("./wire.js").LanecastError} LanecastError
 * @typedef {import("./wire.js").Header} Header
 */

const decoder = new TextDecoder();

/** An event of a subscription. */
export class Event {
  /**
   * @param {"record"|"message"|"outOfFocus"|"current"|"resumed"} kind  A stored record; a published
   *   message; a record out of focus; all stored records were delivered; the connection was lost and
   *   is established again: a query starts anew, discard its records.
   * @param {string} topic @param {string} key  The record's key, if the topic stores records.
   * @param {Uint8Array} body @param {string} reason  Why the record is out of focus, or why the connection was lost.
   */
  constructor(kind, topic = "", key = "", body = new Uint8Array(), reason = "") {
    this.kind = kind;
    this.topic = topic;
    this.key = key;
    this.body = body;
    this.reason = reason;
  }
  /** The message as text; invalid UTF-8 becomes U+FFFD. */
  get text() {
    return decoder.decode(this.body);
  }
  /** The message as a value, if it is JSON. @returns {any} */
  json() {
    return JSON.parse(this.text);
  }
}

/** A subscription: iterate over its events with `for await`, or await `next`. */
export class Subscription {
  /** @param {import("./connection.js").Connection} client @param {string} name @param {Header} header */
  constructor(client, name, header) {
    this.name = name;
    this.client = client;
    this.header = header;
    /** @type {Event[]} */
    this.events = [];
    /** Bytes of the bodies of these events. */
    this.bytes = 0;
    /** @type {((event: Event|null) => void)[]} */
    this.readers = [];
    /** @type {LanecastError|null} */
    this.error = null;
    this.hasEnded = false;
    this.hasDelivered = false;
  }
  /** The next event; null when the subscription has ended. @returns {Promise<Event|null>} */
  async next() {
    let event = this.events.shift() ?? null;
    this.bytes -= event?.body.length ?? 0;
    if (event === null && !this.hasEnded) {
      event = await new Promise((resolve) => this.readers.push(resolve));
    }
    if (event === null && this.error !== null) throw this.error;
    return event;
  }
  async *[Symbol.asyncIterator]() {
    for (let event; (event = await this.next()) !== null; ) yield event;
  }
  /** Ends the subscription. Events received before remain readable. */
  unsubscribe() {
    this.client.end(this, null);
  }
  /** @param {Event} event */
  put(event) {
    this.hasDelivered = true;
    const reader = this.readers.shift();
    if (reader !== undefined) return reader(event);
    this.events.push(event);
    this.bytes += event.body.length;
  }
  /** @param {LanecastError|null} error */
  stop(error) {
    this.hasEnded = true;
    this.error = error;
    for (const reader of this.readers.splice(0)) reader(null);
  }
}
