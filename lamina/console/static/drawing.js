// Draws the charts of a page with uPlot, and runs the SQL box at Ctrl+Enter.
"use strict";

const COLOURS = ["#2f6fb3", "#b3592f", "#3d8b52", "#8a4fb0", "#9a8420", "#7b8794"];

// The width of the axis of values: 7 pixels for each character of its longest label, and the ticks.
const wide = (_, labels) => Math.max(70, 20 + 7 * Math.max(0, ...(labels ?? []).map((label) => label.length)));

function draw(place) {
  const given = JSON.parse(place.dataset.chart);
  const ink = getComputedStyle(document.body).color;
  const twoDigits = (value) => String(value).padStart(2, "0");
  const day = (at) => `${at.getUTCFullYear()}-${twoDigits(at.getUTCMonth() + 1)}-${twoDigits(at.getUTCDate())}`;
  const time = (at) => `${twoDigits(at.getUTCHours())}:${twoDigits(at.getUTCMinutes())}`;
  const instants = (_, splits) => splits.map((seconds, number) => {
    const at = new Date(seconds * 1000);
    const before = number && new Date(splits[number - 1] * 1000);
    if (splits.length > 1 && splits[1] - splits[0] >= 86400) return day(at);
    return before && day(before) === day(at) ? time(at) : `${time(at)}\n${day(at)}`;
  });
  const axis = { stroke: ink, grid: { stroke: "#8883", width: 1 }, ticks: { stroke: "#8883" } };
  const lines = Object.keys(given.lines).map((label, number) => ({
    label, stroke: COLOURS[number], width: 1.5, points: { show: given.times.length < 60 },
  }));
  new uPlot({
    width: place.clientWidth, height: 240, padding: [null, 40, null, null], tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    axes: [{ ...axis, values: instants, space: 90 }, { ...axis, size: wide }], series: [{ value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...lines],
  }, [given.times, ...Object.values(given.lines)], place);
}

document.querySelectorAll("[data-chart]").forEach(draw);
document.querySelectorAll("form textarea").forEach((box) => box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
}));
