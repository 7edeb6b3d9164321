/**
 * Looks at the example page while it publishes what the page shows, and tells what it has found by
 * asking for a page of that name.
 */

import { Client } from "../lanecast.js";

const PATIENCE = 20_000;
const server = new URLSearchParams(location.search).get("server") ?? "";
const frame = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe"));

/** What stands in the rows that are there. */
function rows() {
  const body = frame.contentDocument?.getElementById("rows");
  const there = [...(body?.querySelectorAll("tr:not(.gone)") ?? [])];
  return there.map((row) => [...row.children].map((cell) => cell.textContent).join("|")).join(";");
}

/** Waits until the rows are these. */
async function shows(expected) {
  for (const end = performance.now() + PATIENCE; rows() !== expected; ) {
    if (performance.now() > end) {
      const state = frame.contentDocument?.getElementById("state")?.textContent;
      throw new Error(`not ${expected || "empty"} but ${rows() || "empty"} (${state})`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function look() {
  const client = await Client.connect(server, { name: "publisher" });
  const publish = (fields) => client.publish("orders", JSON.stringify(fields));
  await publish({ id: 1, qty: 10 });
  await publish({ id: 2, qty: 1 });
  await client.flush();
  const wish = new URLSearchParams({ server, topic: "orders", filter: "/qty >= 5" });
  frame.src = `../example/index.html?${wish}`;
  await shows("1|10");
  await publish({ id: 2, qty: 5 });
  await shows("1|10;2|5");
  await publish({ id: 1, qty: 20 });
  await shows("1|20;2|5");
  await publish({ id: 2, qty: 4 });
  await shows("1|20");
  const markup = "<img src=x onerror=alert(1)><b>";
  await publish({ id: 3, qty: 7, [markup]: markup });
  await shows(`1|20;3|7|${markup}`);
  const page = /** @type {Document} */ (frame.contentDocument);
  if (page.querySelector("img, b") !== null) throw new Error("a message became markup");
  const { scrollWidth, clientWidth } = /** @type {Element} */ (page.scrollingElement);
  if (scrollWidth > clientWidth) throw new Error("the page is wider than a phone");
  await client.delete("orders", { filter: "/id = 1" });
  await shows(`3|7|${markup}`);
  // The test that started this page ends the server, and starts another one without state.
  await fetch("/ask/restart");
  await shows("");
  await publish({ id: 4, qty: 9 });
  await shows("4|9");
  client.close();
  return "everything";
}

look().catch((error) => `FAILED: ${error}`).then((found) => {
  fetch(`/found/${encodeURIComponent(found)}`).catch(() => {});
});
