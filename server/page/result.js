// What came of a job: the model to take away, before and after, and everything that the report says.

import { get, remove, save, token } from "/page/api.js";
import { announce, code, copyButton, el, pairs, showFailure, table } from "/page/dom.js";
import { change, count, duration, factor, plural, size } from "/page/figures.js";
import { graphsSection } from "/page/graphs.js";
import { isSure } from "/page/jobs.js";
import { nameOf } from "/page/names.js";
import { proofsSection } from "/page/proofs.js";
import { waterfall } from "/page/waterfall.js";

export async function showResult(job, body, signal) {
  const top = el("div", {}, el("p", { class: "verdict" }, job.result.verdict),
    job.result.stopped ? el("p", { class: "alert" }, `It was stopped: ${job.result.stopped}`) : "", downloads(job));
  const loading = el("p", { class: "dim" }, "Reading the report…");
  body.replaceChildren(top, loading);
  const [report, scene] = await Promise.all([get(job.links.report, signal), sceneOf(job, signal)]);
  if (signal.aborted) return;
  const proofs = proofsSection(report, scene);
  const parts = [
    ["result", "Before and after", comparison(report)],
    ["time", "Where the time went", waterfall(report, scene, proofs.open)],
    ["graphs", "Both graphs", graphsSection(report, scene, proofs.open)],
    ["rewrites", "Rewrites and their proofs", proofs.element],
    ["run", "How to run it", running(report)],
    ["check", "Outputs compared", check(report)],
    ["facts", "Where the numbers come from", facts(report)],
  ].filter(([, , content]) => content);
  const sections = parts.map(([id, title, content]) => el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, tabindex: -1 }, title), content));
  loading.replaceWith(...report.notes.map((note) => el("p", { class: "note" }, note)), contents(parts), ...sections);
}

// Results of older versions have none; then there is more to read and less to see.
async function sceneOf(job, signal) {
  try {
    return await get(job.links.graphs, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    return { returned: job.result.returned === "optimized", rules: [], before: null, after: null, regions: [], note: "this result was made without drawings" };
  }
}

function contents(parts) {
  const go = (id) => (event) => {
    event.preventDefault(); // the address says which job it is
    const title = document.getElementById(`${id}-title`);
    title.scrollIntoView();
    title.focus({ preventScroll: true });
  };
  return el("nav", { class: "contents", "aria-label": "Sections" }, parts.map(([id, title]) => el("a", { href: `#${id}`, on: { click: go(id) } }, title)));
}

function downloads(job) {
  const problem = el("div");
  const word = { "model.onnx": job.result.returned === "optimized" ? "Download the model" : "Download the original", "report.json": "Report (JSON)" };
  const order = (file) => ({ "model.onnx": 0, "report.json": 2 })[file.name] ?? 1;
  const links = [...job.result.files].sort((a, b) => order(a) - order(b)).map((file) => {
    const link = el("a", { href: file.url, download: file.name, class: file.name === "model.onnx" ? "button main" : "button" },
      word[file.name] ?? file.name, el("span", { class: "size" }, ` ${size(file.bytes)}`));
    link.addEventListener("click", (event) => {
      if (!token()) return;
      event.preventDefault();
      link.setAttribute("aria-busy", "true");
      save(file.url, file.name).catch((error) => showFailure(problem, error)).finally(() => link.removeAttribute("aria-busy"));
    });
    return link;
  });
  const drop = el("button", { type: "button" }, "Delete");
  drop.addEventListener("click", async () => {
    if (!isSure(job)) return;
    try {
      await remove(`/v1/jobs/${job.id}`);
      announce(`${nameOf(job.id)} deleted`);
      location.hash = "#/";
    } catch (error) {
      showFailure(problem, error);
    }
  });
  return el("div", {}, el("div", { class: "line downloads" }, links, drop), problem);
}

function comparison(report) {
  const { timing, before, after } = report;
  const kept = report.returned === "original";
  const rows = [];
  if (timing.before) {
    const now = kept ? timing.before : timing.after;
    rows.push(["latency, median", latency(timing.before), now ? latency(now) : "—",
      kept || !timing.speedup ? "the same" : [`${factor(timing.speedup)} faster`, range(interval(timing.speedup_interval))]]);
  } else rows.push(["latency", "not timed", "not timed", timing.reason]);
  rows.push(["nodes", count(before.nodes), count(after.nodes), change(before.nodes, after.nodes)]);
  rows.push(["size", size(before.file_bytes), size(after.file_bytes), change(before.file_bytes, after.file_bytes)]);
  rows.push(["parameters", count(before.parameters), count(after.parameters), change(before.parameters, after.parameters)]);
  const check = { equal: `equal on ${plural(report.check.runs, "input set")}`, different: "different", unchecked: "not compared" }[report.check.status];
  rows.push(["outputs", el("td", { colspan: 3 }, check)]);
  const points = timing.points.length > 1 ? table(["sizes", "before", "after", "speed-up"], timing.points.map((p) => [
    Object.entries(p.sizes).map(([name, value]) => `${name} = ${value}`).join(", "),
    p.before ? duration(p.before.median) : "—", p.after ? duration(p.after.median) : "—",
    p.speedup ? [factor(p.speedup), range(interval(p.speedup_interval))] : "—"])) : "";
  const figures = el("div", {}, el("div", { class: "scroll" }, table(["", "before", "after", "change"], rows, { class: "compare" })),
    points ? el("div", { class: "scroll" }, points) : "");
  return el("div", { class: "columns" }, figures, operators(before.operators, after.operators));
}

const range = (text) => (text ? [" ", el("small", { class: "range" }, text)] : "");
const latency = (value) => [duration(value.median), range(`${duration(value.interval.low)} to ${duration(value.interval.high)}`)];
const interval = (value) => (value ? `${value.low.toFixed(2)} to ${value.high.toFixed(2)}` : "");

function operators(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const rows = names.map((name) => [name, before[name] ?? 0, after[name] ?? 0]);
  const moved = rows.filter(([, a, b]) => a !== b).sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1]));
  if (!moved.length) return el("p", { class: "dim" }, "The same operators, as many of each.");
  const shown = moved.map(([name, a, b]) => [name, count(a), count(b), `${b > a ? "+" : "−"}${count(Math.abs(b - a))}`]);
  return el("details", { open: moved.length <= 12 }, el("summary", {}, `${plural(moved.length, "operator")} used more or less often`),
    el("div", { class: "scroll" }, table(["operator", "before", "after", "change"], shown, { class: "compare" })));
}

function running(report) {
  const { deployment, portable } = report;
  if (!deployment) return null;
  const better = deployment.verdict === "faster" && deployment.speedup;
  const words = better ? `These session options made the same graph ${factor(deployment.speedup)} faster than the usual ones:`
    : deployment.searched ? "No session options were faster than these, with confidence:" : "As given:";
  const options = Object.entries(deployment.options);
  const parts = [el("p", {}, words), code(deployment.code, "the Python code")];
  if (options.length) parts.push(el("div", { class: "scroll" }, table(["option", "value"], options)), el("p", {}, copyButton(JSON.stringify(deployment.options, null, 1), "the options as JSON", "Copy as JSON")));
  parts.push(...deployment.notes.map((note) => el("p", { class: "dim" }, note)));
  if (deployment.tried.length) {
    const rows = deployment.tried.map((t) => [t.change, t.verdict, t.speedup ? factor(t.speedup) : "—", t.kept ? "yes" : "", t.note]);
    parts.push(el("details", {}, el("summary", {}, `${plural(deployment.tried.length, "option")} tried`), el("div", { class: "scroll" }, table(["option", "verdict", "speed-up", "kept", "note"], rows))));
  }
  if (portable) {
    const named = Object.entries(portable.operators).map(([name, number]) => `${name} ${number}`).join(", ");
    const alone = portable.speedup ? `would be ${factor(portable.speedup)} the original's speed` : "was not measured";
    parts.push(el("p", {}, `Operators of onnxruntime's own: ${named}. With standard operators alone the result ${alone}. ${portable.note}`));
  }
  return el("div", {}, parts);
}

function check(report) {
  const { status, reason, outputs, notes, inputs } = report.check;
  const rows = outputs.map((o) => [o.output, o.dtype, o.max_absolute_error.toPrecision(3), o.max_relative_error.toPrecision(3),
    `${o.absolute_tolerance} + ${o.relative_tolerance}·|x|`, o.equal ? "yes" : "NO"]);
  return el("div", {}, reason ? el("p", {}, `${status}: ${reason}`) : "",
    rows.length ? el("div", { class: "scroll" }, table(["output", "type", "largest difference", "relative", "allowed", "equal"], rows, { class: "tight" })) : "",
    notes.map((note) => el("p", { class: "dim" }, note)),
    inputs.length ? el("details", {}, el("summary", {}, plural(inputs.length, "input set")), el("ul", {}, inputs.map((line) => el("li", {}, line)))) : "");
}

function facts(report) {
  const e = report.environment;
  const shapes = Object.entries(report.timing.shapes).map(([name, shape]) => `${name} [${shape.join(", ")}]`).join("; ");
  const options = Object.entries(report.options).map(([name, value]) => [name, JSON.stringify(value)]);
  return el("div", {}, pairs([["device", e.device], ["target", e.target], ["driver", e.driver || "—"], ["threads", e.threads],
    ["input shapes", shapes || "—"], ["superopt", e.superopt], ["onnxruntime", e.onnxruntime], ["platform", e.platform],
    ["took", duration(report.seconds)], ["peak memory", size(report.peak_memory_bytes)],
    ["SHA-256 before", report.before.sha256], ["SHA-256 after", report.after.sha256]]),
    el("details", {}, el("summary", {}, "Every option"), pairs(options)));
}
