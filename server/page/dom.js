// Elements whose text stays text. Nothing on this page parses markup; its policy would not let it.

const SVG = "http://www.w3.org/2000/svg";
// Characters that no font shows, or that reorder what is around them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g;

export const visible = (text) => String(text).replace(UNSEEN, "\ufffd");
export const find = (id) => document.getElementById(id);

// el("a", { class: "x", href: "#/", on: { click: act } }, "text", other). An attribute that is null or false is left out.
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : visible(value));
  }
  for (const [event, act] of Object.entries(on)) element.addEventListener(event, act);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "").map(asNode));
  return element;
}

const asNode = (child) => (child instanceof Node ? child : document.createTextNode(visible(child)));

export function table(head, rows, attributes = {}) {
  return el("table", attributes,
    el("thead", {}, el("tr", {}, head.map((cell) => (cell ? el("th", { scope: "col" }, cell) : el("td"))))),
    el("tbody", {}, rows.map(([first, ...rest]) =>
      el("tr", {}, el("th", { scope: "row" }, first), rest.map((cell) => (cell instanceof HTMLTableCellElement ? cell : el("td", {}, cell)))))));
}

export function pairs(rows) {
  return el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]).flat());
}

// Said to whoever cannot see the page change.
export function announce(text) {
  find("announcer").textContent = visible(text);
}

// What went wrong, in the words of the service; read out at once.
export function showFailure(place, failure, ...more) {
  const extra = failure.document?.missing ? el("p", {}, "Choose these files too: ", el("code", {}, failure.document.missing.join(", "))) : null;
  place.replaceChildren(el("div", { class: "alert", role: "alert" },
    el("p", {}, el("b", {}, failure.title || "That did not work"), ": ", failure.detail || failure.message), extra, more));
}

export function copyButton(text, what, word = "Copy") {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, word);
  button.addEventListener("click", async () => {
    const done = await copied(text);
    button.textContent = done ? "Copied" : "Select it and copy";
    announce(done ? `${what} copied` : "The browser does not let this page copy");
    setTimeout(() => { button.textContent = word; }, 2000);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // no permission, or no TLS: the old way
    const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function code(text, what) {
  return el("div", { class: "code" }, el("pre", { tabindex: 0, role: "region", "aria-label": what }, text), copyButton(text, what));
}
