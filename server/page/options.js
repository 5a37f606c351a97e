// The form of options, made from the service's own description of them: names, words, choices and defaults are there.

import { el, find } from "/page/dom.js";

const UP_FRONT = ["target", "budget", "dim", "allow"]; // the others are one click away

export function buildOptions(place, description) {
  const known = description.paths["/v1/jobs"].post.parameters.filter((p) => p.in === "query");
  const rank = (p) => (UP_FRONT.includes(p.name) ? UP_FRONT.indexOf(p.name) : UP_FRONT.length);
  const fields = known.map((parameter, i) => ({ parameter, i })).sort((a, b) => rank(a.parameter) - rank(b.parameter) || a.i - b.i)
    .map(({ parameter }) => field(parameter));
  const first = fields.filter((f) => UP_FRONT.includes(f.name));
  const rest = fields.filter((f) => !UP_FRONT.includes(f.name));
  place.append(el("div", { class: "fields" }, first.map((f) => f.element)),
    el("details", { id: "more-options" }, el("summary", {}, "More options"), el("div", { class: "fields" }, rest.map((f) => f.element))));
  return {
    // What differs from the defaults, as a query; the service knows its defaults best.
    query() {
      const chosen = new URLSearchParams();
      for (const f of fields) for (const value of f.values()) chosen.append(f.name, value);
      return chosen.toString();
    },
    // Marks the option that a problem is about; false where it is about none.
    blame(name, why) {
      for (const f of fields) f.blame(f.name === name ? why : "");
      const guilty = fields.find((f) => f.name === name);
      if (!guilty) return false;
      if (rest.includes(guilty)) find("more-options").open = true;
      guilty.input.focus();
      return true;
    },
  };
}

function field({ name, description, schema }) {
  const id = `option-${name}`;
  const input = control(id, schema);
  const wrong = el("span", { class: "wrong", id: `${id}-wrong` });
  input.setAttribute("aria-describedby", `${id}-help ${id}-wrong`);
  const label = el("label", { for: id }, name.replaceAll("_", " "));
  const help = el("span", { class: "help", id: `${id}-help` }, description);
  const parts = input.type === "checkbox" ? [el("span", { class: "check" }, input, label)] : [label, input];
  return {
    name, input,
    element: el("div", { class: "field" }, parts, help, wrong),
    values: () => values(input, schema),
    blame(why) {
      wrong.textContent = why;
      input.toggleAttribute("aria-invalid", Boolean(why));
    },
  };
}

function control(id, schema) {
  if (schema.enum) {
    const choices = schema.enum.map((value) => el("option", { value, selected: value === schema.default }, value));
    return el("select", { id }, choices);
  }
  if (schema.type === "boolean") return Object.assign(el("input", { id, type: "checkbox" }), { checked: schema.default });
  if (schema.type === "array") {
    const { examples = [], description = "" } = schema.items;
    return el("textarea", { id, rows: 1, spellcheck: "false", placeholder: examples.length ? `${description}, as ${examples[0]}` : description });
  }
  const step = schema.type === "integer" ? 1 : "any";
  return el("input", { id, type: "number", step, min: schema.minimum, max: schema.maximum, value: schema.default, inputmode: "decimal" });
}

function values(input, schema) {
  if (schema.type === "boolean") return input.checked === schema.default ? [] : [String(input.checked)];
  if (schema.type === "array") return input.value.split(/\s+/).filter(Boolean);
  const text = input.value.trim();
  return text === "" || text === String(schema.default) ? [] : [text];
}
