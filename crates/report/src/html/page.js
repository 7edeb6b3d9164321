"use strict";
// The page is complete without this: it only opens the line that a number leads to, and says below
// a chart what the pointer is next to.
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();

for (const figure of document.querySelectorAll("figure")) {
  const drawing = figure.querySelector("svg");
  const output = figure.querySelector("output");
  const marks = [...drawing.querySelectorAll(".mark")];
  const distance = (mark, event) => {
    const box = mark.getBoundingClientRect();
    return Math.hypot(
      box.x + box.width / 2 - event.clientX,
      // Bars are meant wherever above or below them the pointer is.
      mark.tagName === "rect" ? 0 : box.y + box.height / 2 - event.clientY,
    );
  };
  drawing.addEventListener("pointermove", (event) => {
    let nearest = null;
    let least = 40;
    for (const mark of marks) {
      const here = distance(mark, event);
      if (here < least) [nearest, least] = [mark, here];
    }
    output.textContent = nearest ? nearest.querySelector("title").textContent : "";
  });
  drawing.addEventListener("pointerleave", () => { output.textContent = ""; });
}
