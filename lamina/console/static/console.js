// Says when the console itself is gone, leaves alone what a person has marked to copy, and listens only while it is seen.
"use strict";

const SILENCE = 5000; // milliseconds; a reading comes every second

const ALARMS = ["gone", "state", "attention"]; // shown whatever is marked
const HIDDEN = 60000; // milliseconds that a page listens when nobody sees it

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
  if (ALARMS.includes(event.target.getAttribute("sse-swap"))) return;
  const marked = document.getSelection();
  if (marked && !marked.isCollapsed && event.target.contains(marked.anchorNode)) event.preventDefault();
});
setInterval(() => { if (Date.now() - heard > SILENCE) away.hidden = false; }, 1000);

let leaving;
document.addEventListener("visibilitychange", () => {
  clearTimeout(leaving);
  const stream = document.querySelector("[sse-connect]")?.["htmx-internal-data"]?.sseEventSource;
  if (document.hidden) leaving = setTimeout(() => stream?.close(), HIDDEN); // a browser has six connections to a host
  else if (stream?.readyState === EventSource.CLOSED) location.reload();
});
