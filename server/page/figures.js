// Numbers as people read them.

export function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(3)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(3)} ms` : `${(seconds * 1e6).toFixed(1)} µs`;
}

export function size(bytes) {
  if (bytes >= 2 ** 20) return `${(bytes / 2 ** 20).toFixed(2)} MiB`;
  return bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`;
}

// Whole from a hundred on: the clock knows no more.
export function microseconds(value) {
  return Math.abs(value) >= 100 ? `${count(Math.round(value))} µs` : `${value.toFixed(1)} µs`;
}

export function signed(value) {
  if (Math.abs(value) < 0.05) return "0 µs";
  return `${value < 0 ? "−" : "+"}${microseconds(Math.abs(value))}`;
}

export const count = (number) => number.toLocaleString("en");
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const factor = (value) => `${value.toFixed(2)}×`;

// "12 % less", "3 % more", "the same".
export function change(before, after) {
  if (before === after) return "the same";
  if (before === 0) return "";
  const share = (after - before) / before * 100;
  const shown = Math.abs(share) < 0.05 ? "under 0.1" : Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0);
  return `${shown} % ${share < 0 ? "less" : "more"}`;
}

export function when(text) {
  return new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h} h ${m} min` : m ? `${m} min ${String(s).padStart(2, "0")} s` : `${s} s`;
}

// The middle left out where it is too long: names tell most at their ends.
export function shorten(text, most) {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
