// Says when the console itself is gone, and leaves alone what a person has marked to copy.
"use strict";

const SILENCE = 5000; // milliseconds; a reading comes every second

let heard = Date.now();
const away = document.getElementById("away");

function hears() {
  heard = Date.now();
  away.hidden = true;
}

document.body.addEventListener("htmx:sseOpen", hears);
document.body.addEventListener("htmx:sseError", () => { away.hidden = false; });
document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
  hears();
  const marked = document.getSelection();
  if (marked && !marked.isCollapsed && event.target.contains(marked.anchorNode)) event.preventDefault();
});
setInterval(() => { if (Date.now() - heard > SILENCE) away.hidden = false; }, 1000);
