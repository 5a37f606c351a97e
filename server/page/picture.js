// One graph that can be moved and enlarged. Only what is in sight is in the document; seen from afar, all boxes of a kind
// are one shape. So a graph of thousands of nodes moves as lightly as a small one.

import { el, svg } from "/page/dom.js";

const MARGIN = 16;
const ROW = 240; // height of a drawer that boxes and lines are kept in
const NEAR = 0.4; // scale from which on text can be read
const READABLE = 0.9;
const LEAST = 0.02, MOST = 3;
const SIGNS = { removed: "−", added: "+", changed: "~" };
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Picture {
  // `picked(box)`: a box was chosen; `moved(this)`: the view has changed; `sized(this)`: its size
  // is known, or has changed before anybody moved it.
  constructor(data, name, { picked, moved, sized }) {
    Object.assign(this, { data, picked, moved, sized, x: 0, y: 0, scale: 1, width: 0, height: 0, chosen: -1, near: null, touched: false });
    this.drawers = new Map();
    data.boxes.forEach((box, i) => this.keep("boxes", i, box.y, box.y + box.height));
    data.lines.forEach((line, i) => this.keep("lines", i, data.boxes[line.source].y, data.boxes[line.target].y));
    this.drawn = { boxes: new Map(), lines: new Map() };
    this.groups = { lines: svg("g", { class: "lines" }), boxes: svg("g") };
    this.world = svg("g", {}, this.groups.lines, this.groups.boxes);
    this.element = el("div", { class: "view", tabindex: 0, role: "group", "aria-label": `${name}, ${data.label}. Arrow keys move it, plus and minus zoom, 0 shows all.` },
      svg("svg", { role: "img", "aria-label": data.label, focusable: "false" }, this.world));
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  keep(kind, index, top, bottom) {
    for (let row = Math.floor(top / ROW); row <= Math.floor(bottom / ROW); row += 1) {
      if (!this.drawers.has(row)) this.drawers.set(row, { boxes: [], lines: [] });
      this.drawers.get(row)[kind].push(index);
    }
  }

  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    const placed = this.width > 0 && this.touched;
    const [cx, cy] = [this.x + this.width / 2 / this.scale, this.y + this.height / 2 / this.scale];
    [this.width, this.height] = [clientWidth, clientHeight];
    if (placed) this.show(cx - clientWidth / 2 / this.scale, cy - clientHeight / 2 / this.scale, this.scale);
    else this.sized(this);
  }

  // The height that shows all of it at a readable size, if that is not too much.
  get wish() {
    return Math.round(Math.min(Math.max(this.data.height + 2 * MARGIN, 140), 560));
  }

  get fitting() {
    return Math.min(this.width / (this.data.width + 2 * MARGIN), this.height / (this.data.height + 2 * MARGIN), 1);
  }

  begin() {
    const lit = this.data.boxes.find((box) => box.region !== null);
    if (this.fitting >= 0.6) this.fit();
    else this.centre(lit);
  }

  fit() {
    const { width, height } = this.data;
    this.show(width / 2 - this.width / 2 / this.fitting, height / 2 - this.height / 2 / this.fitting, this.fitting);
  }

  // At a readable size, with a box in the upper half; without one, from the top.
  centre(box) {
    const [x, y] = box ? [box.x + box.width / 2, box.y] : [this.data.width / 2, 0];
    const tall = this.data.height + 2 * MARGIN > this.height / READABLE;
    const top = tall ? Math.max(y - this.height / READABLE * 0.3, -MARGIN) : this.data.height / 2 - this.height / 2 / READABLE;
    this.show(x - this.width / 2 / READABLE, top, READABLE);
  }

  show(x, y, scale) {
    this.scale = Math.min(Math.max(scale, Math.min(LEAST, this.fitting)), MOST);
    const [w, h] = [this.width / this.scale, this.height / this.scale];
    this.x = Math.min(Math.max(x, -w * 0.6), this.data.width - w * 0.4);
    this.y = Math.min(Math.max(y, -h * 0.6), this.data.height - h * 0.4);
    this.world.setAttribute("transform", `translate(${-this.x * this.scale} ${-this.y * this.scale}) scale(${this.scale})`);
    this.draw();
    this.moved(this);
  }

  // Where the middle of the view is, from left to right.
  get middle() {
    return this.x + this.width / 2 / this.scale;
  }

  // As the other picture is moved: no emptier above or below than that one is.
  level(middle, y, scale, highest) {
    const top = Math.min(highest, -MARGIN);
    const bottom = Math.max(this.data.height + MARGIN - this.height / scale, top);
    this.show(middle - this.width / 2 / scale, Math.min(Math.max(y, top), bottom), scale);
  }

  zoom(factor, fx = 0.5, fy = 0.5) {
    this.touched = true;
    const [px, py] = [this.x + this.width * fx / this.scale, this.y + this.height * fy / this.scale];
    const scale = Math.min(Math.max(this.scale * factor, Math.min(LEAST, this.fitting)), MOST);
    this.show(px - this.width * fx / scale, py - this.height * fy / scale, scale);
  }

  draw() {
    const near = this.scale >= NEAR;
    if (near !== this.near) {
      this.near = near;
      for (const kind of ["boxes", "lines"]) {
        this.drawn[kind].clear();
        this.groups[kind].replaceChildren(...(near ? [] : this.afar(kind)));
      }
    }
    if (!near) return;
    const reach = this.height / this.scale;
    const wanted = { boxes: new Set(), lines: new Set() };
    for (let row = Math.floor((this.y - reach / 2) / ROW); row <= Math.floor((this.y + reach * 1.5) / ROW); row += 1) {
      for (const kind of ["boxes", "lines"]) for (const i of this.drawers.get(row)?.[kind] ?? []) wanted[kind].add(i);
    }
    for (const kind of ["boxes", "lines"]) {
      for (const [i, element] of this.drawn[kind]) if (!wanted[kind].has(i)) { element.remove(); this.drawn[kind].delete(i); }
      for (const i of wanted[kind]) if (!this.drawn[kind].has(i)) this.add(kind, i);
    }
  }

  add(kind, i) {
    const element = kind === "boxes" ? box(this.data.boxes[i]) : line(this.data, this.data.lines[i]);
    if (kind === "boxes" && i === this.chosen) element.classList.add("chosen");
    this.drawn[kind].set(i, element);
    this.groups[kind].append(element);
  }

  afar(kind) {
    if (kind === "lines") return [svg("path", { d: this.data.lines.map((l) => l.path).join("") })];
    const outlines = {};
    for (const b of this.data.boxes) (outlines[b.kind] ??= []).push(`M${b.x} ${b.y}h${b.width}v${b.height}h${-b.width}z`);
    return Object.entries(outlines).map(([name, d]) => svg("g", { class: `n ${name}` }, svg("path", { d: d.join("") })));
  }

  // Position of the box under a point of the window.
  at(clientX, clientY) {
    const frame = this.element.getBoundingClientRect();
    const [x, y] = [this.x + (clientX - frame.left) / this.scale, this.y + (clientY - frame.top) / this.scale];
    return (this.drawers.get(Math.floor(y / ROW))?.boxes ?? []).find((i) => {
      const b = this.data.boxes[i];
      return x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height;
    });
  }

  choose(i) {
    this.drawn.boxes.get(this.chosen)?.classList.remove("chosen");
    this.chosen = i ?? -1;
    this.drawn.boxes.get(this.chosen)?.classList.add("chosen");
  }

  listen() {
    const view = this.element;
    let held = null;
    view.addEventListener("pointerdown", (event) => { if (event.isPrimary && event.button === 0) held = { x: event.clientX, y: event.clientY, far: false }; });
    view.addEventListener("pointermove", (event) => {
      if (!held || !event.isPrimary) return;
      if (!held.far && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
      if (!held.far) { this.touched = held.far = true; view.setPointerCapture(event.pointerId); view.classList.add("held"); }
      this.show(this.x - (event.clientX - held.x) / this.scale, this.y - (event.clientY - held.y) / this.scale, this.scale);
      [held.x, held.y] = [event.clientX, event.clientY];
    });
    view.addEventListener("pointerup", (event) => {
      if (held && !held.far) {
        const i = this.at(event.clientX, event.clientY);
        if (i !== undefined) { this.choose(i); this.picked(this.data.boxes[i]); }
      }
      held = null;
      view.classList.remove("held");
    });
    view.addEventListener("pointercancel", () => { held = null; view.classList.remove("held"); });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const frame = view.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.01), (event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height);
    }, { passive: false });
    view.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      this.touched ||= Boolean(step);
      if (step) this.show(this.x + step[0] * this.width * 0.1 / this.scale, this.y + step[1] * this.height * 0.15 / this.scale, this.scale);
      else if (event.key === "+") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }
}

function box({ kind, head, foot, title, x, y, width, height }) {
  const [middle, centre] = [x + width / 2, y + height / 2];
  const low = height < 30;
  const round = kind === "value" || kind === "constant" ? (foot ? 9 : height / 2) : 7;
  return svg("g", { class: `n ${kind}` }, svg("title", {}, title), svg("rect", { x, y, width, height, rx: round }),
    SIGNS[kind] ? [svg("circle", { cx: x + 2, cy: y + 2, r: 7 }), svg("text", { x: x + 2, y: y + 6, class: "sign" }, SIGNS[kind])] : "",
    svg("text", { x: middle, y: centre + (foot ? low ? -2.5 : -2 : 4), class: "h" }, head),
    foot ? svg("text", { x: middle, y: centre + (low ? 8.5 : 11), class: "f" }, foot) : "");
}

// A line too long to draw has an end at either box, which says where it leads.
function line(data, { source, target, path }) {
  if (path) return svg("path", { d: path, "marker-end": "url(#arrow)" });
  const [from, to] = [data.boxes[source], data.boxes[target]];
  const stub = (x, y, text) => svg("g", { class: "far" }, svg("title", {}, text), svg("path", { d: `M${x} ${y}v12` }));
  return svg("g", {}, stub(from.x + from.width / 2, from.y + from.height, `goes to ${to.title.split("\n")[0]}`), stub(to.x + to.width / 2, to.y - 15, `comes from ${from.title.split("\n")[0]}`));
}
