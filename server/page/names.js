// What the user calls the models of his jobs: the service does not keep file names, this browser does.

const KEY = "superopt-names";
const MOST = 200;

function known() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

export function remember(job, name) {
  localStorage.setItem(KEY, JSON.stringify([[job, name], ...known().filter(([id]) => id !== job)].slice(0, MOST)));
}

export function nameOf(job) {
  const found = known().find(([id]) => id === job);
  return found ? String(found[1]) : `Job ${job.slice(0, 8)}`;
}

export const forgetNames = () => localStorage.removeItem(KEY);
