// Rewrites by name: what was done, where, and why it is right. The rule's text is fetched when it is asked for.

import { get } from "/page/api.js";
import { code, el } from "/page/dom.js";
import { microseconds, plural, signed } from "/page/figures.js";

const MOST_PLACES = 60;
const KINDS = { pass: "pass", rule: "proved rule", partial: "partial + correction, proved" };

export function proofsSection(report, scene) {
  const groups = new Map();
  for (const rewrite of report.rewrites) {
    if (!groups.has(rewrite.name)) groups.set(rewrite.name, []);
    groups.get(rewrite.name).push(rewrite);
  }
  const gains = new Map(scene.rules.map((rule) => [rule.name, rule]));
  const names = [...new Set([...scene.rules.map((rule) => rule.name).filter((name) => groups.has(name)), ...groups.keys()])];
  const texts = new Map(report.mutants.map((mutant) => [mutant.name, mutant.text]));
  const boxes = new Map(names.map((name) => [name, group(name, groups.get(name), gains.get(name), texts)]));
  const open = (name) => {
    const box = boxes.get(name);
    if (!box) return;
    box.open = true;
    box.scrollIntoView({ block: "start" });
    box.querySelector("summary").focus({ preventScroll: true });
  };
  const element = el("div", {}, searchLine(report.search), names.length ? [...boxes.values()] : el("p", { class: "dim" }, "No rewrite was made."));
  return { element, open };
}

function searchLine(search) {
  if (!search) return "";
  const ended = search.exhausted ? "Nothing was left to try." : "A budget ended the search.";
  return el("p", { class: "dim" }, `${plural(search.rules, "proved rule")}; ${plural(search.regions, "region")} at first, ${search.distinct_regions} different ones in all rounds; `
    + `${plural(search.candidates, "graph")} seen, ${search.measured} timed. ${ended}`);
}

function group(name, rewrites, gain, texts) {
  const first = rewrites[0];
  const gained = gain && gain.gained_us !== null ? `${signed(-gain.gained_us)}${gain.measured ? "" : " predicted"}` : "";
  const box = el("details", { class: "rule" },
    el("summary", {}, el("b", {}, name), el("span", { class: "dim" }, `${rewrites.length} ×`), el("span", { class: "dim" }, KINDS[first.kind] ?? first.kind), gained ? el("span", { class: "gain" }, gained) : ""));
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(...inside(name, rewrites, texts));
  });
  return box;
}

function inside(name, rewrites, texts) {
  const first = rewrites[0];
  const proofs = [...new Set(rewrites.map((rewrite) => rewrite.proof))];
  const parts = new Set(rewrites.map((rewrite) => rewrite.detail)).size === 1 && first.detail ? [el("p", {}, first.detail)] : [];
  parts.push(...proofs.map((proof) => el("p", {}, "Why it is right: ", proof.startsWith("unbounded") ? "proved for all sizes, " : "", el("code", {}, proof))));
  if (first.kind !== "pass") parts.push(ruleText(name, texts));
  if (first.rule_digest) parts.push(el("p", { class: "dim" }, "Digest of the rule and of its formulas: ", el("code", {}, first.rule_digest)));
  parts.push(places(rewrites));
  return parts;
}

function ruleText(name, texts) {
  const place = el("div", { "aria-live": "polite" }, el("p", { class: "dim" }, "Fetching the rule…"));
  const show = (text) => place.replaceChildren(code(text, `the rule ${name}`));
  if (texts.has(name)) show(texts.get(name));
  else {
    get(`/v1/rules/${encodeURIComponent(name)}`).then((rule) => show(rule.text))
      .catch((error) => place.replaceChildren(el("p", { class: "dim" }, `The rule's text is not at hand: ${error.detail ?? error.message}.`)));
  }
  return place;
}

function places(rewrites) {
  const times = (r) => [["measured", r.measured_us_before, r.measured_us_after], ["predicted", r.predicted_us_before, r.predicted_us_after]]
    .filter(([, a, b]) => a !== null && b !== null).map(([how, a, b]) => `${microseconds(a)} → ${microseconds(b)} ${how}`).join("; ");
  const timed = rewrites.some((r) => times(r) !== "");
  const differ = new Set(rewrites.map((r) => r.detail)).size > 1; // else it was said above
  const rows = rewrites.slice(0, MOST_PLACES).map((r) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, r.place)), differ ? el("td", {}, r.detail) : "", timed ? el("td", {}, times(r)) : ""));
  const rest = rewrites.length - MOST_PLACES;
  return el("div", { class: "scroll" }, el("table", { class: "places" },
    el("thead", {}, el("tr", {}, ["place", ...(differ ? ["what"] : []), ...(timed ? ["time of its region"] : [])].map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", {}, rows)),
    rest > 0 ? el("p", { class: "dim" }, `and ${plural(rest, "more place")}, all of them in the report`) : "");
}
