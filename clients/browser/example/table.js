/**
 * A live table of a query: a row for each record that meets the filter, which comes, changes and
 * goes with it. Whatever comes from the server is put into the page as text, never as markup.
 */

import { Client } from "../lanecast.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("wish"));
const state = /** @type {HTMLElement} */ (document.getElementById("state"));
const names = /** @type {HTMLElement} */ (document.getElementById("names"));
const body = /** @type {HTMLElement} */ (document.getElementById("rows"));

/** Most rows shown; more would slow the browser down. */
const ROWS_MAX = 1_000;
const COLUMNS_MAX = 40;
/** For how long a row that is out of focus is still seen, in milliseconds. */
const FAREWELL = 600;

/** @type {string[]} */
let columns = [];
/** @type {Map<string, HTMLElement>} by the keys of records */
const rows = new Map();
let changes = 0;
/** @type {Client|null} */
let client = null;

function clear() {
  columns = [];
  rows.clear();
  names.replaceChildren();
  body.replaceChildren();
}

/** @param {string} tag @param {string} text */
function cell(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

/** The fields of a message; one that is no object is a single field. */
function fields(event) {
  try {
    const value = event.json();
    if (typeof value === "object" && value !== null) return new Map(Object.entries(value));
  } catch {
    // No JSON: shown as it is.
  }
  return new Map([["message", event.text]]);
}

/** A record is new, or has changed. */
function put(event) {
  const values = fields(event);
  for (const name of values.keys()) {
    if (columns.includes(name) || columns.length === COLUMNS_MAX) continue;
    columns.push(name);
    names.append(cell("th", name));
  }
  let row = rows.get(event.key);
  if (row === undefined) {
    if (rows.size === ROWS_MAX) return;
    row = document.createElement("tr");
    rows.set(event.key, row);
    body.append(row);
  }
  row.replaceChildren(...columns.map((name) => {
    const value = values.get(name) ?? "";
    return cell("td", typeof value === "object" ? JSON.stringify(value) : String(value));
  }));
  if (event.kind === "message") {
    row.animate([{ background: "var(--fresh)" }, {}], { duration: 1_000 });
  }
}

/** A record does not meet the filter any more, or is gone. */
function remove(key) {
  const row = rows.get(key);
  if (row === undefined) return;
  rows.delete(key);
  row.classList.add("gone");
  setTimeout(() => row.remove(), FAREWELL);
}

function show(event) {
  if (event.kind === "record" || event.kind === "message") put(event);
  else if (event.kind === "outOfFocus") remove(event.key);
  else if (event.kind === "resumed") clear();
  if (event.kind === "message" || event.kind === "outOfFocus") changes += 1;
  const full = rows.size === ROWS_MAX ? " (no more are shown)" : "";
  state.textContent = `${rows.size} rows${full}, ${changes} changes`;
}

async function watch() {
  client?.close();
  clear();
  changes = 0;
  const wish = new FormData(form);
  const [server, topic, filter] = ["server", "topic", "filter"].map((name) => `${wish.get(name)}`);
  state.textContent = `connecting to ${server}`;
  try {
    const current = await Client.connect(server, {
      onState: (name, why) => {
        if (name === "waiting") state.textContent = `connecting again: ${why}`;
      },
    });
    client = current;
    const table = await current.queryAndSubscribe(topic, { filter: filter || undefined });
    for await (const event of table) show(event);
  } catch (error) {
    state.textContent = String(error);
  }
}

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  watch();
});

// index.html?server=ws://127.0.0.1:9008&topic=orders&filter=... watches at once.
const given = new URLSearchParams(location.search);
for (const [name, value] of given) {
  const input = form.elements.namedItem(name);
  if (input instanceof HTMLInputElement) input.value = value;
}
if (given.has("topic")) watch();
