"use strict";
// Pictures that can be moved, boxes that tell about themselves, links that open what they lead to. Without it the page
// shows the same, each picture as large as fits.

const READABLE = 0.75; // a picture that fits only below this scale starts at its top, and can be moved

function setUp(view) {
  const svg = view.querySelector("svg");
  const full = svg.viewBox.baseVal;
  const whole = { x: full.x, y: full.y, width: full.width, height: full.height };
  const box = view.getBoundingClientRect();
  if (view.closest("details:not([open])") || view.classList.contains("moving")) return;
  const scale = Math.min(box.width / whole.width, 640 / whole.height);
  if (scale >= READABLE) return;
  view.classList.add("moving");
  const frame = svg.getBoundingClientRect();
  const ratio = frame.height / frame.width;
  const show = (x, y, width) => {
    const least = 120, most = Math.max(whole.width, whole.height / ratio, frame.width) * 1.2;
    width = Math.min(Math.max(width, least), most);
    const height = width * ratio;
    x = Math.min(Math.max(x, whole.x - width * 0.6), whole.x + whole.width - width * 0.4);
    y = Math.min(Math.max(y, whole.y - height * 0.3), whole.y + whole.height - height * 0.4);
    svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    view.dispatchEvent(new CustomEvent("moved"));
  };
  const now = () => svg.viewBox.baseVal;
  const zoom = (factor, at) => {
    const v = now();
    const fx = at ? at.x : 0.5, fy = at ? at.y : 0.5;
    show(v.x + v.width * fx * (1 - factor), v.y + v.height * fy * (1 - factor), v.width * factor);
  };
  const fit = () => {
    const width = Math.max(whole.width, whole.height / ratio);
    show(whole.x - (width - whole.width) / 2, whole.y - (width * ratio - whole.height) / 2, width);
  };
  const readable = (x, y) => {
    const width = frame.width / 0.9, height = width * ratio;
    if (whole.height <= height) y = whole.y - (height - whole.height) / 2;
    if (whole.width <= width) x = whole.x + whole.width / 2;
    show(x === undefined ? whole.x + (whole.width - width) / 2 : x - width / 2, y === undefined ? whole.y : y, width);
  };
  view.picture = { show, now, readable };
  readable();
  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [sign, name, act] of [["+", "zoom in", () => zoom(0.7)], ["−", "zoom out", () => zoom(1.4)], ["◻", "show all", fit]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = sign;
    button.title = name;
    button.addEventListener("click", act);
    tools.append(button);
  }
  view.append(tools);
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY, far: false, id: event.pointerId }; });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const v = now(), unit = v.width / frame.width;
    if (!held.far && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
    if (!held.far) { held.far = true; svg.setPointerCapture(held.id); view.classList.add("held"); }
    show(v.x - (event.clientX - held.x) * unit, v.y - (event.clientY - held.y) * unit, v.width);
    held.x = event.clientX;
    held.y = event.clientY;
  });
  const release = () => { view.dragged = held !== null && held.far; held = null; view.classList.remove("held"); };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("click", (event) => { if (view.dragged) { event.preventDefault(); event.stopPropagation(); } }, true);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const r = svg.getBoundingClientRect();
    zoom(Math.exp(event.deltaY * 0.01), { x: (event.clientX - r.left) / r.width, y: (event.clientY - r.top) / r.height });
  }, { passive: false });
  view.addEventListener("keydown", (event) => {
    const v = now(), step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) show(v.x + step[0] * v.width * 0.1, v.y + step[1] * v.height * 0.15, v.width);
    else if (event.key === "+") zoom(0.7);
    else if (event.key === "-") zoom(1.4);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });
}

// The two whole graphs move together: heights of the same region belong to each other.
function couple(one, two) {
  if (!one.picture || !two.picture) return;
  const heights = (view) => {
    const found = new Map();
    for (const link of view.querySelectorAll("a[href^='#region-']")) {
      const box = link.getBBox(), key = link.getAttribute("href");
      if (!found.has(key)) found.set(key, box.y);
    }
    return found;
  };
  const first = heights(one), second = heights(two);
  const pairs = [...first.keys()].filter((key) => second.has(key)).map((key) => [first.get(key), second.get(key)]);
  let busy = false;
  const follow = (from, to, a, b) => from.addEventListener("moved", () => {
    if (busy) return;
    busy = true;
    const v = from.picture.now(), w = to.picture.now(), middle = v.y + v.height / 2;
    let near = null;
    for (const pair of pairs) if (!near || Math.abs(pair[a] - middle) < Math.abs(near[a] - middle)) near = pair;
    const shift = near ? near[b] - near[a] : 0;
    to.picture.show(w.x, v.y + shift, v.width);
    busy = false;
  });
  follow(one, two, 0, 1);
  follow(two, one, 1, 0);
}

const detail = document.getElementById("detail");
let chosen = null;
function tell(node) {
  if (chosen) chosen.classList.remove("chosen");
  chosen = node;
  detail.hidden = !node;
  if (!node) return;
  node.classList.add("chosen");
  detail.querySelector("pre").textContent = node.querySelector("title").textContent;
}
document.addEventListener("click", (event) => {
  const node = event.target.closest(".view .n");
  if (node) tell(node);
});
detail.querySelector("button").addEventListener("click", () => tell(null));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tell(null); });

function open() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView();
}
window.addEventListener("hashchange", open);
document.addEventListener("toggle", (event) => {
  if (event.target.open) event.target.querySelectorAll(".view").forEach(setUp);
}, true);
document.querySelectorAll(".view").forEach(setUp);
const halves = document.querySelectorAll(".whole .view");
for (const half of halves) {
  const lit = half.querySelector("a[href^='#region-']");
  if (!half.picture || !lit) continue;
  const box = lit.getBBox();
  half.picture.readable(box.x + box.width / 2, box.y - 100);
}
if (halves.length === 2) couple(halves[0], halves[1]);
open();
