// One job: followed while it works, then its result.

import { follow, get, remove } from "/page/api.js";
import { announce, el, find, showFailure } from "/page/dom.js";
import { clock, factor, when } from "/page/figures.js";
import { stateChip } from "/page/jobs.js";
import { nameOf } from "/page/names.js";
import { showResult } from "/page/result.js";

const MOST_LINES = 1000;

export async function showJob(id, signal) {
  const place = find("job");
  const path = `/v1/jobs/${id}`;
  const job = await get(path, signal);
  document.title = `${nameOf(id)} — superopt`;
  const heading = el("h1", { id: "job-title", tabindex: -1 }, nameOf(id));
  const chip = el("span", { id: "job-state" }, stateChip(job.state));
  const about = el("p", { class: "dim about" }, `handed in ${when(job.created)}`, job.cached ? " · answered with the result of an equal job" : "");
  const body = el("div");
  const problem = el("div");
  place.replaceChildren(el("p", { class: "back" }, el("a", { href: "#/" }, "← All jobs")), el("div", { class: "title" }, heading, chip), about, problem, body);
  heading.focus({ preventScroll: true });
  if (job.ended === null) {
    const live = new Live(job, body, () => cancel(path, problem));
    await follow(`${path}/events`, (kind, data) => live.tell(kind, data), signal);
    live.stop();
    if (signal.aborted) return;
  }
  const ended = await get(path, signal);
  if (signal.aborted) return;
  chip.replaceChildren(stateChip(ended.state));
  await conclude(ended, body, signal);
}

async function conclude(job, body, signal) {
  if (job.state === "done") {
    announce(`Done. ${job.result.verdict}`);
    await showResult(job, body, signal);
    return;
  }
  const told = el("div");
  if (job.state === "failed") showFailure(told, { title: job.error?.title, detail: job.error?.detail ?? "no reason was told" });
  else {
    told.append(el("p", {}, "This job was canceled."));
    announce("Canceled");
  }
  body.replaceChildren(told, log(job.log.map((line) => [new Date(line.time), line.stage, line.detail])));
}

async function cancel(path, problem) {
  try {
    await remove(path);
  } catch (error) {
    showFailure(problem, error);
  }
}

function log(lines) {
  const list = el("ol", { class: "log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Log" }, lines.map(logLine));
  return el("details", { class: "log-box", open: lines.length === 0 }, el("summary", {}, "Log"), list);
}

const logLine = ([time, stage, detail]) => el("li", {}, el("time", { class: "dim" }, time.toLocaleTimeString()), " ", el("b", {}, stage), detail ? ` ${detail}` : "");

class Live {
  constructor(job, body, cancel) {
    this.bar = el("progress", { max: 1, value: job.progress, "aria-label": "Share of the way" });
    this.share = el("span", { class: "share" });
    this.stage = el("p", { class: "stage" });
    this.best = el("dd");
    this.elapsed = el("dd");
    this.log = log([]);
    this.announced = "";
    this.state = job.state;
    this.since = job.started ? new Date(job.started) : null;
    const button = el("button", { type: "button", on: { click: () => { button.disabled = true; cancel(); } } }, "Cancel");
    body.replaceChildren(el("section", { class: "live", "aria-label": "Progress" },
      this.stage, el("div", { class: "line" }, this.bar, this.share, button),
      el("dl", { class: "tiles" },
        el("div", {}, el("dt", {}, "best so far"), this.best),
        el("div", {}, el("dt", {}, "at work for"), this.elapsed)),
      this.log));
    this.show(job.progress, job.speedup, job.basis);
    this.say(job.state === "queued" ? "Waiting for its turn" : job.stage, job.detail);
    this.timer = setInterval(() => this.tick(), 1000);
    this.tick();
  }

  tell(kind, data) {
    if (kind === "state") {
      this.state = data.state;
      find("job-state").replaceChildren(stateChip(data.state));
      if (data.state === "running") this.since = new Date(data.time * 1000);
      if (data.state === "queued") this.say("Waiting for its turn", "");
      this.line(data.time, data.state, data.attempt > 1 ? `attempt ${data.attempt}` : "");
      return;
    }
    this.show(data.progress, data.speedup, data.basis);
    this.say(data.stage, data.detail);
    this.line(data.time, data.stage, data.detail);
  }

  show(progress, speedup, basis) {
    this.bar.value = progress;
    this.share.textContent = `${Math.round(progress * 100)} %`;
    this.best.replaceChildren(speedup ? factor(speedup) : el("span", { class: "dim" }, "not known yet"), speedup && basis ? el("span", { class: "dim" }, ` ${basis}`) : "");
  }

  say(stage, detail) {
    this.stage.replaceChildren(el("b", {}, stage || "starting"), detail ? el("span", { class: "dim" }, ` ${detail}`) : "");
    if (stage !== this.announced) announce(`${stage}, ${this.share.textContent}`);
    this.announced = stage;
  }

  line(time, stage, detail) {
    const list = this.log.querySelector("ol");
    const low = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
    list.append(logLine([new Date(time * 1000), stage, detail]));
    if (list.childElementCount > MOST_LINES) list.firstElementChild.remove();
    if (low) list.scrollTop = list.scrollHeight;
  }

  tick() {
    this.elapsed.textContent = this.since && this.state === "running" ? clock((Date.now() - this.since) / 1000) : "—";
  }

  stop() {
    clearInterval(this.timer);
  }
}
