// Reports a console that is gone, keeps text that a person has selected, and listens only while the page is visible.
"use strict";

const SILENCE = 5000; // milliseconds (a reading comes every second)

const ALARMS = ["gone", "state", "attention"]; // updated even while text is selected
const HIDDEN = 60000; // milliseconds for which a hidden page listens

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
