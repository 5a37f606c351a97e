// The service's own API, as any client uses it. The token lives in this tab alone.

const TOKEN = "superopt-token";
const RETRY_MS = 1000;

export class Failure extends Error {
  constructor(status, document, retryAfter = null) {
    super(document.detail || document.title || `status ${status}`);
    Object.assign(this, { status, document, title: document.title, detail: document.detail, retryAfter });
    if (retryAfter) this.detail = `${this.detail}. Try again in ${retryAfter} s.`;
  }
}

export const unreachable = () => new Failure(0, { title: "No answer", detail: "the service cannot be reached" });
export const token = () => sessionStorage.getItem(TOKEN);
export const setToken = (value) => (value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN));
const authorization = () => (token() ? { Authorization: `Bearer ${token()}` } : {});

async function request(path, { headers = {}, ...rest } = {}) {
  let answer;
  try {
    answer = await fetch(path, { headers: { ...authorization(), ...headers }, credentials: "omit", cache: "no-store", ...rest });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!answer.ok) throw new Failure(answer.status, await problem(answer.text()), answer.headers.get("Retry-After"));
  return answer;
}

async function problem(text) {
  try {
    const document = JSON.parse(await text);
    return typeof document === "object" && document ? document : {};
  } catch {
    return {};
  }
}

export async function get(path, signal) {
  return (await request(path, { signal })).json();
}

export async function remove(path) {
  return (await request(path, { method: "DELETE" })).status;
}

// Events of a job until it has ended; after a break it goes on where it was. `tell(kind, data)` gets each one.
export async function follow(path, tell, signal) {
  let last = null;
  while (true) {
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      for await (const event of eventsOf(await request(path, { signal, headers }))) {
        last = event.id;
        tell(event.kind, event.data);
        if (event.kind === "state" && ["done", "failed", "canceled"].includes(event.data.state)) return;
      }
      if (await hasEnded(path, signal)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Failure) || (error.status && error.status < 500)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    if (signal.aborted) return;
  }
}

const hasEnded = async (events, signal) => (await get(events.replace(/\/events$/, ""), signal)).ended !== null;

async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    while (true) {
      const { value, done } = await reader.read().catch(() => { throw unreachable(); });
      if (done) return;
      buffer += value;
      const blocks = buffer.split("\n\n");
      buffer = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":"))
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
        if (fields.data) yield { id: fields.id, kind: fields.event, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Hand a model in. XMLHttpRequest, because fetch does not say how much has been sent. Returns the job and a way to stop.
export function handIn(query, model, data, key, progress) {
  const sending = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    sending.open("POST", `/v1/jobs?${query}`);
    const headers = { ...authorization(), "Idempotency-Key": key };
    if (!data.length) headers["Content-Type"] = "application/octet-stream";
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value);
    sending.upload.addEventListener("progress", (event) => progress(event.loaded, event.total));
    sending.addEventListener("load", async () => {
      const document = await problem(sending.responseText);
      if (sending.status < 300) resolve(document);
      else reject(new Failure(sending.status, document, sending.getResponseHeader("Retry-After")));
    });
    sending.addEventListener("error", () => reject(unreachable()));
    sending.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    sending.send(data.length ? form(model, data) : model);
  });
  return { done, stop: () => sending.abort() };
}

function form(model, data) {
  const parts = new FormData();
  parts.append("model", model, "model.onnx");
  for (const { name, file } of data) parts.append("data", file, name);
  return parts;
}

export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

// A link to a file. With a token the browser cannot follow it by itself: the file is fetched, then handed over.
export async function save(path, name) {
  const blob = await (await request(path)).blob();
  const url = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
