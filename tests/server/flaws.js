// What somebody with a screen reader, or with tired eyes, would stumble over on a page: a list, one thing each.
// Runs in the page as the body of a function.

const flaws = [];
const say = (what, e) => flaws.push(`${what}: ${e.outerHTML.slice(0, 120)}`);
const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
const words = (name, e) => (e.getAttribute(name) ?? "").split(" ").filter(Boolean);

function shown(e) {
  const folded = e.closest("details:not([open]) > :not(summary)");
  return !folded && e.checkVisibility({ visibilityProperty: true });
}

function name(e) {
  const told = [e.getAttribute("aria-label"), e.title];
  told.push(...[...(e.labels ?? [])].map((label) => label.textContent));
  told.push(...words("aria-labelledby", e).map((id) => document.getElementById(id)?.textContent));
  told.push(e.matches("input, select, textarea") ? "" : e.textContent);
  return told.join(" ").trim();
}

// Names, and what they refer to.
for (const e of all("a, button, input, select, textarea, progress, summary, [tabindex='0']")) {
  if (!name(e)) say("no name", e);
}
for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby], label[for]")) {
  for (const id of ["aria-describedby", "aria-labelledby", "for"].flatMap((a) => words(a, e))) {
    if (!document.getElementById(id)) say(`no element ${id}`, e);
  }
}
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) flaws.push(`id twice: ${id}`);
for (const e of all("svg")) if (e.getAttribute("aria-hidden") !== "true" && !name(e)) say("nameless picture", e);

// The outline.
let level = 0;
for (const e of all("h1, h2, h3, h4")) {
  if (Number(e.tagName[1]) > level + 1) say("heading level left out", e);
  level = Number(e.tagName[1]);
}
if (all("h1").length !== 1) flaws.push("not one h1");
for (const tag of ["main", "header", "footer"]) if (all(tag).length !== 1) flaws.push(`not one ${tag}`);
for (const e of all("table")) if (!e.querySelector("th[scope]")) say("table without headers", e);
for (const e of all("th")) if (!e.textContent.trim()) say("empty header", e);
if (!document.documentElement.lang || !document.title) flaws.push("no language or title");

// Sizes.
for (const e of all("button, select, input:not([type=file]), textarea, a.button")) {
  const { width, height } = e.getBoundingClientRect();
  if (width < 16 || height < 16) say("too small to hit", e);
}
const { scrollWidth } = document.documentElement;
if (scrollWidth > innerWidth) flaws.push(`scrolls sideways: ${scrollWidth} > ${innerWidth}`);

// Contrast of text, as WCAG 2 has it.
function channels(color) {
  const found = (color.match(/[\d.]+/g) ?? []).map(Number);
  return found.length > 3 ? found : [...found, 1];
}
const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one, two) {
  const [high, low] = [luminance(one), luminance(two)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}
function ground(e) {
  const layers = [];
  for (let part = e; part; part = part.parentElement) layers.unshift(channels(getComputedStyle(part).backgroundColor));
  return layers.reduce((under, top) => over(top, under), [255, 255, 255]);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement;
  if (!texts.currentNode.textContent.trim() || !shown(e)) continue;
  if (e.closest("svg, .unseen, :disabled, .skip, option")) continue;
  const found = contrast(over(channels(getComputedStyle(e).color), ground(e)), ground(e));
  if (found < 4.5) say(`contrast ${found.toFixed(2)}`, e);
}
return flaws;
