// The list of one's own jobs.

import { get, remove } from "/page/api.js";
import { announce, el, find, showFailure } from "/page/dom.js";
import { factor, when } from "/page/figures.js";
import { nameOf } from "/page/names.js";

const AGAIN_MS = 3000;
const MARKS = { queued: "○", running: "◐", done: "✓", failed: "✕", canceled: "–" };
let timer = 0;
let shown = 50;
let last = "";
let here = null; // aborted when the page shows something else

export const stateChip = (state) => el("span", { class: `state ${state}` }, el("span", { "aria-hidden": "true" }, `${MARKS[state] ?? "?"} `), state);

export async function showJobs(signal) {
  here = signal;
  clearTimeout(timer);
  const place = find("jobs");
  try {
    const { jobs, next } = await get(`/v1/jobs?limit=${shown}`, signal);
    if (signal.aborted) return;
    find("jobs-problem").replaceChildren();
    // Drawn anew only when something has changed: whoever reads it with a screen reader keeps the place.
    const now = JSON.stringify([jobs.map((job) => [job.id, job.state, job.progress, job.speedup]), next, shown]);
    if (now !== last || !place.childElementCount) draw(place, jobs, next);
    last = now;
    if (jobs.some((job) => job.ended === null)) again(signal);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) throw error;
    showFailure(find("jobs-problem"), error);
    again(signal);
  }
}

function again(signal) {
  const show = () => showJobs(signal).catch((detail) => window.dispatchEvent(new CustomEvent("denied", { detail })));
  timer = setTimeout(() => !signal.aborted && show(), AGAIN_MS);
}

export const isSure = (job) => job.ended === null || confirm(`Delete the files of ${nameOf(job.id)}?`);

function draw(place, jobs, next) {
  if (!jobs.length) {
    place.replaceChildren(el("p", { class: "dim" }, "None yet."));
    return;
  }
  const focused = document.activeElement?.id;
  const rows = jobs.map((job) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: `#/jobs/${job.id}`, id: `open-${job.id}` }, nameOf(job.id))),
    el("td", {}, stateChip(job.state), job.state === "running" ? el("span", { class: "dim" }, ` ${Math.round(job.progress * 100)} %`) : ""),
    el("td", { class: "number" }, job.speedup === null ? "" : `${factor(job.speedup)}${job.basis === "predicted" ? " predicted" : ""}`),
    el("td", { class: "dim" }, when(job.created)),
    el("td", {}, el("button", { type: "button", id: `remove-${job.id}`, on: { click: () => giveUp(job) } },
      job.ended === null ? "Cancel" : "Delete", el("span", { class: "unseen" }, ` ${nameOf(job.id)}`)))));
  const more = el("button", { type: "button", id: "more-jobs", on: { click: () => { shown = Math.min(200, shown + 50); void showJobs(here); } } }, "Show older ones");
  place.replaceChildren(
    el("div", { class: "scroll" }, el("table", { class: "jobs" },
      el("thead", {}, el("tr", {}, ["model", "state", "speed-up", "handed in", ""].map((cell) =>
        cell ? el("th", { scope: "col" }, cell) : el("td", {})))),
      el("tbody", {}, rows))),
    next && shown < 200 ? more : "");
  if (focused) find(focused)?.focus();
}

async function giveUp(job) {
  if (!isSure(job)) return;
  try {
    await remove(`/v1/jobs/${job.id}`);
    announce(`${nameOf(job.id)} ${job.ended === null ? "canceled" : "deleted"}`);
  } catch (error) {
    if (error.status !== 410) showFailure(find("jobs-problem"), error);
  }
  await showJobs(here);
  if (!document.activeElement || document.activeElement === document.body) find("jobs-title").focus();
}
