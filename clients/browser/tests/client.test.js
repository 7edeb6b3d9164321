/** What a client says and hears. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, ConnectionLost, LanecastError, NameTaken, OtherVersion, ProtocolError, Refused }
  from "../lanecast.js";
import { commands, sockets, until } from "./testbed.js";

const URL = "ws://127.0.0.1:9008";

/** A client and its sockets; the server acknowledges everything that `play` does not care for. */
async function desk(play = () => false, settings = {}) {
  const { Socket, opened } = sockets((socket, header, body) => {
    if (!play(socket, header, body, opened.length)) socket.ack(header);
  });
  const client = await Client.connect(URL, { WebSocket: Socket, delayMax: 20, ...settings });
  return { client, opened };
}

test("a logon says who it is", async () => {
  const who = { name: "exp-client", user: "me", password: "pw" };
  const { client, opened } = await desk(undefined, who);
  assert.deepEqual({ ...opened[0].said[0][0] }, {
    cmd: "logon", cmd_id: "1", ack_type: "processed", client_name: "exp-client", user_id: "me",
    password: "pw", version: "0.1.0", message_type: "json", protocol_version: "1",
  });
  client.close();
  assert.ok(opened[0].isClosed);
  await assert.rejects(client.publish("t", "x"), /has been closed/);
});

test("a refused logon is final", async () => {
  const refuses = (socket, header) => {
    socket.ack(header, { status: "failure", reason: "auth failure" });
    return true;
  };
  await assert.rejects(desk(refuses), (error) => error instanceof Refused
    && error.message === "cannot log on: the server says: auth failure");
});

test("a server of another version is refused for good", async () => {
  for (const protocol_version of [0, 2]) {
    const opened = [];
    const says = (socket, header) => {
      opened.push(socket);
      socket.ack(header, { protocol_version });
      return true;
    };
    await assert.rejects(desk(says), (error) => error instanceof OtherVersion
      && error.server === protocol_version
      && error.message === `cannot log on: the server speaks version ${protocol_version} of the ` +
        "command protocol, this client version 1: use one version of lanecast at both ends");
    assert.ok(opened.length === 1 && opened[0].isClosed);
  }
  const { client } = await desk((socket, header) => {
    if (header.cmd === "logon") socket.ack(header, { protocol_version: 1 });
    return header.cmd === "logon";
  });
  client.close();
});

test("servers are tried one after the other", async () => {
  const { Socket, opened } = sockets((socket, header) => {
    if (socket.url === URL) socket.ack(header);
    else socket.cut();
  });
  const client = await Client.connect(["ws://nowhere", URL], { WebSocket: Socket });
  assert.deepEqual(opened.map((socket) => socket.url), ["ws://nowhere", URL]);
  client.close();
  const none = sockets((socket) => socket.cut());
  await assert.rejects(Client.connect("ws://nowhere", { WebSocket: none.Socket }),
    /cannot connect to ws:\/\/nowhere: .*connection has ended/);
  const silent = sockets(() => {});
  await assert.rejects(Client.connect(URL, { WebSocket: silent.Socket, timeout: 20 }),
    /no answer within 20 ms/);
});

test("a connection that does not last is no reason to hurry", async () => {
  const { Socket, opened } = sockets((socket, header) => {
    socket.ack(header);
    if (header.cmd === "logon") setTimeout(() => socket.cut());
  });
  const start = performance.now();
  const client = await Client.connect(URL, { WebSocket: Socket });
  await until(() => opened.length === 6);
  client.close();
  // They are apart by 25 ms at least, then by twice that, and so on. Timers may be early by 1 ms.
  const least = 25 + 50 + 100 + 200 + 400 - 5;
  assert.ok(performance.now() - start >= least, `6 connections in ${performance.now() - start} ms`);
});

test("records, then changes", async () => {
  const { client, opened } = await desk((socket, header) => {
    if (header.cmd !== "sow_and_subscribe") return false;
    assert.equal(header.opts, "oof,conflation=100ms");
    assert.equal(header.query_id, header.sub_id);
    const { query_id } = header;
    socket.ack(header);
    socket.say({ cmd: "group_begin", query_id });
    socket.say({ cmd: "sow", topic: "orders", query_id }, '{"k":"8","l":2}{}{"k":"9","l":1}x');
    socket.say({ cmd: "group_end", query_id });
    socket.say({ cmd: "p", topic: "orders", sow_key: "8", sids: `1,${query_id}` }, '{"a":1}');
    const left = { cmd: "oof", topic: "orders", sow_key: "9", reason: "match", sids: query_id };
    socket.say(left, "y");
    return true;
  });
  const orders = await client.queryAndSubscribe("orders", { filter: "/a", conflation: "100ms" });
  const events = [];
  for await (const event of orders) {
    events.push([event.kind, event.key, event.text, event.reason]);
    if (event.kind === "outOfFocus") break;
    if (event.kind === "message") assert.deepEqual(event.json(), { a: 1 });
  }
  assert.deepEqual(events, [["record", "8", "{}", ""], ["record", "9", "x", ""],
    ["current", "", "", ""], ["message", "8", '{"a":1}', ""], ["outOfFocus", "9", "y", "match"]]);
  const waits = orders.next();
  orders.unsubscribe();
  assert.equal(await waits, null);
  assert.equal(opened[0].said.at(-1)[0].sub_id, orders.name);
  client.close();
});

test("answers and refusals", async () => {
  const { client } = await desk((socket, header) => {
    if (header.cmd === "sow") {
      socket.say({ cmd: "sow", topic: "t", query_id: header.cmd_id }, '{"k":"1","l":1}a');
    } else if (header.cmd === "sow_delete") {
      socket.ack(header, { records_deleted: "3" });
      return true;
    } else if (header.filter === "/a =" || header.topic === "bad") {
      socket.ack(header, { status: "failure", reason: "bad filter" });
      return true;
    }
    return false;
  });
  const records = await client.query("t", { orderBy: "/a DESC", top: 2, skip: 1, keys: ["1"] });
  assert.deepEqual(records.map((record) => record.text), ["a"]);
  assert.equal(await client.delete("t", { filter: "/a = 1" }), 3);
  await assert.rejects(client.subscribe("t", { filter: "/a =" }), /cannot subscribe to t: .* bad f/);
  await client.publish("bad", "x");
  await assert.rejects(client.flush(), /cannot publish message 1: .*bad filter/);
  await client.publish("t", "x");
  await client.flush();
  // Neither a command between two messages nor a refused message changes the count.
  await client.query("t");
  await client.publish("bad", "x");
  await assert.rejects(client.flush(), /cannot publish message 3: .*bad filter/);
  client.close();
});

test("a named client sends again what the server has not", async () => {
  let acknowledged = 2;
  const states = [], numbers = [];
  const { client, opened } = await desk((socket, header, body, count) => {
    if (header.cmd === "logon") {
      socket.ack(header, { seq: count === 1 ? "40" : numbers[2] });
      return true;
    }
    if (header.cmd === "p") numbers.push(header.seq);
    return count === 1 && header.cmd === "p" && acknowledged-- <= 0;
  }, { name: "me", onState: (state) => states.push(state) });
  for (const text of ["a", "b", "c", "d"]) await client.publish("t", text);
  await until(() => acknowledged < -1);
  opened[0].cut();
  await client.flush();
  const again = opened[1].said.filter(([header]) => header.cmd === "p");
  assert.deepEqual(again.map(([header, body]) => [header.seq, body]), [[numbers[3], "d"]]);
  assert.deepEqual(states, ["connected", "waiting", "connected"]);
  client.close();
});

test("a server that knows an earlier client of the name covers nothing", async () => {
  const { client, opened } = await desk((socket, header, body, count) => {
    if (header.cmd !== "logon") return count === 1 && header.cmd === "p";
    socket.ack(header, { seq: count === 1 ? "10" : "1000" });
    return true;
  }, { name: "me" });
  await client.publish("t", "a");
  opened[0].cut();
  await client.flush();
  assert.deepEqual(commands(opened[1]), ["logon", "p", "flush"]);
  client.close();
});

test("another program of the same name ends the client", async () => {
  const { client, opened } = await desk((socket, header, body, count) => {
    if (header.cmd !== "logon" || count === 1) return false;
    socket.ack(header, { seq: String(Date.now() * 1000 + 1e12) });
    return true;
  }, { name: "me" });
  opened[0].cut();
  await assert.rejects(client.flush(), NameTaken);
});

test("an error of the application does not stop the client", async (context) => {
  const printed = context.mock.method(console, "error", () => {});
  const { client, opened } = await desk(() => false, { onState: () => { throw new Error("ours"); } });
  opened[0].cut();
  await client.flush();
  assert.equal(opened.length, 2);
  client.close();
  assert.ok(printed.mock.callCount() >= 3);
});

test("calls that are not awaited keep within the limit", async () => {
  let most = 0, sent = new Map();
  const { client } = await desk(() => {
    most = Math.max(most, sent.size);
    return false;
  });
  sent = client.sent;
  await Promise.all(Array.from({ length: 5_000 }, () => client.publish("t", "x")));
  await client.flush();
  assert.ok(most > 4_000 && most <= 4_096, `${most}`);
  client.close();
});

test("duplicates are counted", async () => {
  const { client } = await desk((socket, header, body) => {
    if (body !== "b") return false;
    socket.ack(header, { reason: "duplicate: had before" });
    return true;
  }, { name: "me" });
  for (const text of ["a", "b", "c"]) await client.publish("t", text);
  await client.flush();
  assert.equal(client.duplicates, 1);
  client.close();
});

test("without a name what may be lost is said", async () => {
  const { client, opened } = await desk((socket, header) => header.cmd === "p");
  await client.publish("t", "a");
  opened[0].cut();
  await assert.rejects(client.flush(), (error) => error instanceof ConnectionLost
    && /1 published messages .* name/.test(error.message));
  client.close();
});

test("subscriptions are placed again by their names", async () => {
  const { client, opened } = await desk((socket, header) => header.cmd === "sow_delete");
  const plain = await client.subscribe("t", { filter: "/a" });
  const asked = await client.queryAndSubscribe("kept");
  const doomed = assert.rejects(client.delete("kept", { like: "x" }), /may have been done/);
  await until(() => commands(opened[0]).includes("sow_delete"));
  opened[0].cut();
  await doomed;
  for (const subscription of [plain, asked]) {
    const event = await subscription.next();
    assert.deepEqual([event.kind, event.reason], ["resumed", "the connection has ended"]);
  }
  assert.deepEqual(commands(opened[1]), ["logon", "subscribe", "sow_and_subscribe"]);
  const [, [first], [second]] = opened[1].said;
  assert.deepEqual([first.sub_id, first.filter], [plain.name, "/a"]);
  assert.deepEqual([second.sub_id, second.query_id], [asked.name, asked.name]);
  assert.notEqual(second.cmd_id, asked.name);
  client.close();
  await assert.rejects(plain.next(), /has been closed/);
});

test("silence ends a connection", async () => {
  const { client, opened } = await desk(undefined, { heartbeat: 20 });
  assert.equal(opened[0].said[1][0].opts, "start,1");
  await until(() => opened.length > 1);
  assert.ok(opened[0].said.some(([header]) => header.opts === "beat"));
  client.close();
});

test("who reads too slowly loses the subscription alone", async () => {
  const { client, opened } = await desk(undefined, { waitingMax: 10 });
  const slow = await client.subscribe("t"), quick = await client.subscribe("t");
  for (let count = 0; count < 20; count += 1) {
    opened[0].say({ cmd: "p", topic: "t", sids: `${slow.name},${quick.name}` }, "x");
    assert.equal((await quick.next()).text, "x");
  }
  for (let count = 0; count < 10; count += 1) assert.equal((await slow.next()).text, "x");
  await assert.rejects(slow.next(), /10 events unread/);
  assert.equal(opened[0].said.at(-1)[0].cmd, "unsubscribe");
  client.close();
});

test("long messages that wait are counted by their bytes", async () => {
  const { client, opened } = await desk(undefined, { waitingBytesMax: 1_000 });
  const slow = await client.subscribe("t");
  const say = (text) => opened[0].say({ cmd: "p", topic: "t", sids: slow.name }, text);
  for (let count = 0; count < 10; count += 1) {
    say("x".repeat(600));
    assert.equal((await slow.next()).text.length, 600, "what was read waits no more");
  }
  for (let count = 0; count < 3; count += 1) say("x".repeat(600));
  for (let count = 0; count < 2; count += 1) assert.equal((await slow.next()).text.length, 600);
  await assert.rejects(slow.next(), /1200 bytes unread/);
  client.close();
});

test("hostile messages end the client with an error", async () => {
  for (const data of ["x", "{", '{"c":"dance"}', '{"c":"sow"}{}', "{}",
    '{"c":"ack","status":"success","a":"persisted","s":-1}']) {
    const { client, opened } = await desk();
    const waits = (await client.subscribe("t")).next();
    opened[0].onmessage({ data });
    await assert.rejects(waits, ProtocolError, data);
    await assert.rejects(client.flush(), LanecastError);
    assert.ok(opened[0].isClosed);
  }
  const { client, opened } = await desk();
  for (const data of ["", '{"c":"p"}', '{"c":"ack"}', '{"c":"group_end","query_id":"7"}']) {
    opened[0].onmessage({ data });
  }
  await client.flush();
  client.close();
});

test("records that cannot be sorted end their subscription once", async () => {
  const { client, opened } = await desk(undefined, { name: "desk" });
  for (const isResumed of [false, true]) {
    const orders = await client.queryAndSubscribe("orders", { orderBy: "/id" });
    if (isResumed) {
      opened.at(-1).cut();
      assert.equal((await orders.next()).kind, "resumed");
      await until(() => commands(opened.at(-1)).includes("sow_and_subscribe"));
    }
    const before = opened.at(-1).said.length;
    const failure = { cmd: "ack", ack_type: "completed", status: "failure", cmd_id: "999",
      query_id: orders.name, reason: "too much to sort" };
    opened.at(-1).say(failure);
    await assert.rejects(orders.next(), (error) => error instanceof Refused
      && error.message === "cannot subscribe to orders: the server says: too much to sort");
    assert.equal(opened.at(-1).said.length, before, "there is nothing to unsubscribe");
    const count = opened.length;
    opened.at(-1).cut();
    await until(() => opened.length > count && client.isLoggedOn);
    assert.deepEqual(commands(opened.at(-1)), ["logon"]);
    opened.at(-1).say(failure);
  }
  client.close();
});

test("the records of an answer are bounded", async () => {
  for (const limits of [{ waitingMax: 2 }, { waitingBytesMax: 30 }]) {
    const { client } = await desk((socket, header) => {
      if (header.cmd !== "sow") return false;
      const { cmd_id: query_id, topic } = header;
      for (let left = Number(topic); left > 0; left--) {
        socket.say({ cmd: "sow", topic, query_id }, `{"k":"1","l":15}${"x".repeat(15)}`);
      }
      socket.ack(header);
      return true;
    }, limits);
    assert.equal((await client.query("2")).length, 2);
    await assert.rejects(client.query("9"), /cannot query 9: the answer has more than (2 rec|30 by)/);
    assert.equal((await client.query("1")).length, 1);
    client.close();
  }
});

test("waits are a day at most", async () => {
  const { Socket } = sockets((socket, header) => socket.ack(header));
  for (const wait of ["timeout", "heartbeat", "delayMax"]) {
    for (const value of [-1, 86_400_001, 2 ** 31, Infinity, NaN]) {
      const connected = Client.connect(URL, { WebSocket: Socket, [wait]: value });
      await assert.rejects(connected, new RegExp(`${wait} is not from 0 to 86400000 ms, a day`));
    }
  }
  (await Client.connect(URL, { WebSocket: Socket, timeout: 86_400_000 })).close();
});
