// Which part of the page is shown: the entrance where a token is needed, the start, or one job (`#/jobs/ID`).

import { get, setToken, token } from "/page/api.js";
import { el, find, showFailure } from "/page/dom.js";
import { showJob } from "/page/job.js";
import { showJobs } from "/page/jobs.js";
import { forgetNames } from "/page/names.js";
import { buildOptions } from "/page/options.js";
import { setUpOrder } from "/page/order.js";

const JOB = /^#\/jobs\/([0-9a-f]{32})$/;
let leaving = new AbortController();
let first = true;

async function route() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const job = JOB.exec(location.hash)?.[1];
  show(job ? "job" : "home");
  find("forget").hidden = !token();
  try {
    if (job) await showJob(job, signal);
    else await Promise.all([showJobs(signal), showDevices(signal)]);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) askForToken(error);
    else offerAgain(error);
  }
}

function show(part) {
  for (const name of ["entrance", "home", "job"]) find(name).hidden = name !== part;
  if (part !== "job") document.title = "superopt";
  if (!first && part !== "job") find(`${part}-title`).focus();
  first = false;
}

function offerAgain(error) {
  const again = el("button", { type: "button", on: { click: () => void route() } }, "Try again");
  const place = find(find("job").hidden ? "jobs-problem" : "job");
  showFailure(place, error, el("p", { class: "line" }, again, el("a", { href: "#/" }, "Back to the start")));
}

function askForToken(error) {
  show("entrance");
  find("token-problem").replaceChildren();
  if (token()) showFailure(find("token-problem"), error);
  setToken("");
  find("forget").hidden = true;
  find("token").focus();
}

async function showDevices(signal) {
  const { devices } = await get("/v1/devices", signal);
  const idle = devices.filter((device) => !device.busy).length;
  find("devices").textContent = devices.length
    ? `${[...new Set(devices.map((device) => device.name))].join(", ")}: ${idle ? "idle" : "busy; the job will wait its turn"}`
    : "No worker is there at the moment; the job will wait for one.";
}

find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(find("token").value.trim());
  find("token").value = "";
  void route();
});
find("forget").addEventListener("click", () => {
  setToken("");
  forgetNames();
  void route();
});
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});
window.addEventListener("denied", (event) => askForToken(event.detail));
window.addEventListener("hashchange", () => void route());

const opened = (id) => { location.hash = `#/jobs/${id}`; };
get("/openapi.json").then((description) => {
  find("version").textContent = `superopt ${description.info.version}`;
  setUpOrder(buildOptions(find("options"), description), opened);
}).catch((error) => showFailure(find("order-problem"), error));
void route();
