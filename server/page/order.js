// A new job: files chosen or dropped, options, the upload.

import { Failure, handIn, newKey } from "/page/api.js";
import { announce, el, find, showFailure } from "/page/dom.js";
import { size } from "/page/figures.js";
import { remember } from "/page/names.js";

let files = [];
let key = null; // of an upload that broke off: sent again it is the same job

export function setUpOrder(options, opened) {
  const drop = find("drop"), input = find("files"), form = find("order");
  input.setAttribute("aria-describedby", "files-help");
  input.addEventListener("change", () => { add(input.files); input.value = ""; });
  for (const event of ["dragenter", "dragover"]) drop.addEventListener(event, (e) => { e.preventDefault(); drop.classList.add("over"); });
  for (const event of ["dragleave", "drop"]) drop.addEventListener(event, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (e) => { e.preventDefault(); add(e.dataTransfer.files); });
  // A file dropped beside the field must not replace the page.
  for (const event of ["dragover", "drop"]) window.addEventListener(event, (e) => e.preventDefault());
  form.addEventListener("input", () => { key = null; });
  form.addEventListener("submit", (event) => { event.preventDefault(); void send(options, opened); });
}

function add(chosen) {
  for (const file of chosen) files = [...files.filter((f) => f.name !== file.name), { name: file.name, file }];
  key = null;
  show();
}

const isModel = ({ name }) => /\.(onnx|ort|pb)$/i.test(name);
const model = () => (files.length === 1 ? files[0] : files.find(isModel));

function show() {
  const chosen = model();
  find("chosen").replaceChildren(...files.map((entry) => el("li", {},
    el("code", {}, entry.name), el("span", { class: "dim" }, `${size(entry.file.size)}, ${entry === chosen ? "the model" : "external data"}`),
    el("button", { type: "button", "aria-label": `Leave ${entry.name} out`, on: { click: () => leaveOut(entry) } }, "×"))));
  find("drop").classList.toggle("full", files.length > 0);
  announce(files.map((f) => f.name).join(", ") || "No file chosen");
}

function leaveOut(entry) {
  files = files.filter((f) => f !== entry);
  show();
  find("files").focus();
}

async function send(options, opened) {
  const place = find("order-problem");
  place.replaceChildren();
  options.blame("", "");
  const chosen = model();
  if (!chosen) {
    const detail = files.length ? "none of these files is called .onnx" : "choose an .onnx file first";
    showFailure(place, { title: "No model", detail });
    find("files").focus();
    return;
  }
  busy(true);
  try {
    const job = await upload(options.query(), chosen, files.filter((f) => f !== chosen));
    remember(job.id, chosen.name);
    files = [];
    key = null;
    show();
    opened(job.id);
  } catch (error) {
    if (error.name !== "AbortError") failed(error, options, place);
  } finally {
    busy(false);
  }
}

async function upload(query, chosen, data) {
  key ??= newKey();
  try {
    return await sent(query, chosen, data);
  } catch (error) {
    const renamed = inFolders(error.document?.missing, data);
    if (!renamed) throw error;
    return await sent(query, chosen, renamed);
  }
}

function sent(query, chosen, data) {
  const sending = handIn(query, chosen.file, data, key, (loaded, total) => {
    find("sent").value = total ? loaded / total : 0;
    find("sent-bytes").textContent = loaded === total ? "sent, being looked at" : `${size(loaded)} of ${size(total)}`;
  });
  find("stop-sending").onclick = sending.stop;
  return sending.done;
}

// Tensors may name their files with folders, which a browser does not tell: a file that is missing by its whole name may
// be here by its last part.
function inFolders(missing, data) {
  if (!missing) return null;
  const renamed = data.map((entry) => {
    const place = missing.find((name) => name.endsWith(`/${entry.name}`));
    return place ? { ...entry, name: place } : entry;
  });
  return renamed.some((entry, i) => entry !== data[i]) ? renamed : null;
}

function failed(error, options, place) {
  if (!(error instanceof Failure)) throw error;
  if (error.status) key = null; // it was answered: the next try is another request
  showFailure(place, error);
  if (error.document.option) options.blame(error.document.option, error.detail);
}

function busy(yes) {
  find("sending").hidden = !yes;
  find("order").querySelector("button[type=submit]").disabled = yes;
  if (yes) {
    find("sent").value = 0;
    announce("Uploading");
  }
}
