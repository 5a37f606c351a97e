// Both graphs side by side: as a whole with unchanged stretches folded, or one changed region at a time.

import { el } from "/page/dom.js";
import { plural, shorten } from "/page/figures.js";
import { Picture } from "/page/picture.js";

const LEGEND = [["removed", "− removed"], ["added", "+ added"], ["changed", "~ changed"], ["kept", "unchanged"]];

export function graphsSection(report, scene, openProof) {
  const note = scene.note ? el("p", { class: "dim" }, `${scene.note}.`) : "";
  if (!report.rewrites.length) return null;
  if (!scene.regions.length && !scene.before) return note || el("p", { class: "dim" }, "The two graphs have the same structure: nothing to show.");
  return el("div", {}, scene.returned ? "" : el("p", {}, "This candidate was not returned: the original was."), note, new Graphs(scene, openProof).element);
}

class Graphs {
  constructor(scene, openProof) {
    Object.assign(this, { scene, openProof, pictures: [], anchors: [], busy: false });
    const whole = scene.before ? [el("option", { value: 0 }, "the whole graph")] : [];
    this.select = el("select", { id: "region" }, whole, scene.regions.map((r) => el("option", { value: r.number }, `region ${r.number}: ${shorten(r.place, 60)} (${counts(r)})`)));
    this.select.addEventListener("change", () => this.show());
    this.about = el("div", { class: "region-about" });
    this.sides = el("div", { class: "sides" });
    this.detail = el("div", { class: "detail", role: "status" });
    const tool = (sign, name, act) => el("button", { type: "button", "aria-label": name, title: name, on: { click: act } }, sign);
    const each = (act) => () => (this.coupled ? this.pictures.slice(0, 1) : this.pictures).forEach(act);
    this.element = el("div", {},
      el("p", { class: "legend" }, LEGEND.map(([kind, word]) => el("span", { class: `key ${kind}` }, word))),
      el("div", { class: "line toolbar" }, el("label", { for: "region" }, "Show"), this.select,
        el("span", { class: "tools" }, tool("‹", "Previous region", () => this.step(-1)), tool("›", "Next region", () => this.step(1))),
        el("span", { class: "tools" }, tool("+", "Zoom in", each((p) => p.zoom(1.4))), tool("−", "Zoom out", each((p) => p.zoom(1 / 1.4))), tool("◻", "Show all", () => this.fit()))),
      this.about, this.sides, this.detail,
      el("p", { class: "dim hint" }, "Click a box for its text form. Drag a picture to move it, Ctrl-scroll to zoom; with the keyboard: arrows, + and −."));
    this.show();
  }

  // The two whole graphs move together; the sides of a region are small, and each has its own place.
  get coupled() {
    return this.select.value === "0" && this.pictures.length === 2;
  }

  // Each from its first changed box; the second then takes the scale and the height of the first.
  begin(picture) {
    this.busy = true;
    picture.begin();
    this.busy = false;
    const [first] = this.pictures;
    if (first.width) this.follow(first);
  }

  fit() {
    const ranked = [...this.pictures].sort((a, b) => a.fitting - b.fitting);
    (this.coupled ? ranked.slice(0, 1) : ranked).forEach((picture) => picture.fit());
  }

  step(by) {
    const next = this.select.selectedIndex + by;
    if (next < 0 || next >= this.select.options.length) return;
    this.select.selectedIndex = next;
    this.show();
  }

  go(number) {
    this.select.value = String(number);
    this.show();
    this.select.focus();
  }

  show() {
    const number = Number(this.select.value);
    const region = this.scene.regions.find((r) => r.number === number);
    const shown = region ?? this.scene;
    this.detail.replaceChildren();
    this.about.replaceChildren(...(region ? this.describe(region) : []));
    this.pictures = [];
    const figures = [["before", shown.before], ["after", shown.after]].map(([name, data]) => this.side(name, data, Boolean(region)));
    this.sides.replaceChildren(...figures);
    const height = `${Math.max(...this.pictures.map((p) => p.wish), 140)}px`;
    for (const picture of this.pictures) picture.element.style.height = height;
    this.anchors = region ? [] : this.paired();
  }

  side(name, data, isRegion) {
    const caption = el("figcaption", {}, name);
    if (!data) return el("figure", {}, caption, el("p", { class: "dim nothing" }, isRegion && this.undrawn ? "not drawn" : "nothing"));
    const picture = new Picture(data, name, { picked: (box) => this.tell(box, isRegion), moved: (moved) => this.follow(moved), sized: (sized) => this.begin(sized) });
    this.pictures.push(picture);
    return el("figure", {}, caption, picture.element);
  }

  describe(region) {
    this.undrawn = !region.before && !region.after;
    const chips = region.rules.map((rule) => el("button", { type: "button", class: "chip", on: { click: () => this.openProof(rule.name) } }, rule.count > 1 ? `${rule.name} × ${rule.count}` : rule.name));
    const kinds = { "-": "gone", "+": "new" };
    return [
      el("p", {}, el("code", {}, shorten(region.place, 120)), ` ${counts(region)}`, region.like ? el("span", { class: "dim" }, `, like region ${region.like}`) : ""),
      chips.length ? el("p", { class: "chips" }, "made by ", chips) : "",
      el("details", {}, el("summary", {}, "As text"), el("pre", { tabindex: 0, role: "region", "aria-label": `region ${region.number} as text` }, region.lines.map((line) => el("span", { class: kinds[line[0]] }, `${line}\n`)))),
    ];
  }

  tell(box, isRegion) {
    for (const picture of this.pictures) if (!picture.data.boxes.includes(box)) picture.choose(-1);
    const open = !isRegion && box.region !== null ? el("button", { type: "button", on: { click: () => this.go(box.region) } }, `Show region ${box.region}`) : "";
    this.detail.replaceChildren(el("pre", {}, box.title), open);
  }

  // Heights of the same region in both pictures: they move together, each at its own height.
  paired() {
    const tops = this.pictures.map((picture) => {
      const found = new Map();
      for (const box of picture.data.boxes) if (box.region !== null && !found.has(box.region)) found.set(box.region, box.y);
      return found;
    });
    return tops.length < 2 ? [] : [...tops[0]].filter(([region]) => tops[1].has(region)).map(([region, top]) => [top, tops[1].get(region)]);
  }

  follow(moved) {
    if (this.busy || !this.coupled) return;
    const from = this.pictures.indexOf(moved);
    const other = this.pictures[1 - from];
    if (from < 0 || !other.width) return;
    this.busy = true;
    const middle = moved.y + moved.height / 2 / moved.scale;
    const far = (pair) => Math.abs(pair[from] - middle);
    const near = this.anchors.reduce((best, pair) => (best && far(best) <= far(pair) ? best : pair), null);
    const sideways = moved.middle - (moved.before ?? moved.middle);
    other.level(other.middle + sideways, moved.y + (near ? near[1 - from] - near[from] : 0), moved.scale, moved.y);
    for (const picture of this.pictures) picture.before = picture.middle;
    this.busy = false;
  }
}

function counts(region) {
  const parts = [[region.removed, "removed"], [region.added, "added"], [region.changed, "changed"]].filter(([number]) => number);
  return parts.map(([number, word]) => `${number} ${word}`).join(", ") || plural(0, "node");
}
