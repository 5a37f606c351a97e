// From the time before to the time after, rule by rule. What no rule accounts for is a line of its own.

import { el, svg } from "/page/dom.js";
import { microseconds, plural, shorten, signed } from "/page/figures.js";

const MOST_ROWS = 18;
const FINE = 1000;

export function waterfall(report, scene, openProof) {
  const { before, after, reason } = report.timing;
  if (!report.rewrites.length) return null;
  if (!before || !after) return el("p", { class: "dim" }, `There is no time to divide up: ${reason || "nothing was timed"}.`);
  const [start, end] = [before.median * 1e6, after.median * 1e6];
  const timed = scene.rules.filter((rule) => rule.gained_us !== null);
  const shown = timed.slice(0, MOST_ROWS);
  const rest = timed.slice(MOST_ROWS);
  if (rest.length) {
    const sum = (of) => rest.reduce((total, rule) => total + of(rule), 0);
    shown.push({ name: null, count: sum((r) => r.count), gained_us: sum((r) => r.gained_us), measured: rest.every((r) => r.measured), text: plural(rest.length, "more rule") });
  }
  const levels = [start];
  for (const rule of shown) levels.push(levels.at(-1) - rule.gained_us);
  const top = Math.max(start, end, ...levels);
  const rows = [row("before", "", 0, start, top, microseconds(start), "was")];
  shown.forEach((rule, i) => {
    const name = rule.name === null ? rule.text : el("button", { type: "button", class: "link", on: { click: () => openProof(rule.name) } }, shorten(rule.name, 60));
    const note = `${rule.count} ×${rule.measured ? "" : ", predicted"}`;
    rows.push(row(name, note, levels[i + 1], levels[i], top, signed(levels[i + 1] - levels[i]), rule.gained_us >= 0 ? "gain" : "loss"));
  });
  const left = levels.at(-1);
  const note = shown.length ? "passes, and what regions do to each other" : "none was timed alone";
  rows.push(row(shown.length ? "not told apart" : "all rewrites together", note, end, left, top, signed(end - left), "rest"));
  rows.push(row(scene.returned ? "after" : "candidate", scene.returned ? "" : "not returned", 0, end, top, microseconds(end), "now"));
  return el("div", { class: "scroll" }, el("table", { class: "waterfall" },
    el("thead", { class: "unseen" }, el("tr", {}, ["rule", "bar", "microseconds"].map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", {}, rows)));
}

function row(name, note, one, two, top, value, kind) {
  const [low, high] = [Math.max(Math.min(one, two), 0), Math.max(one, two, 0)];
  const width = Math.max(Math.round((high - low) / top * FINE), 3);
  const x = Math.min(Math.round(low / top * FINE), FINE - width);
  const bar = svg("svg", { viewBox: `0 0 ${FINE} 10`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    svg("rect", { x, y: 0, width, height: 10, class: kind }));
  return el("tr", { class: kind }, el("th", { scope: "row" }, name, note ? el("small", { class: "dim" }, ` ${note}`) : ""), el("td", { class: "bar" }, bar), el("td", { class: "number" }, value));
}
