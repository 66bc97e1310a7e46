// Times: ages that go on by themselves, the exact local time on hover, durations.

// The reader's zone and order of a date, and everywhere the same 24 hours: the server's sentences have them too.
const H24 = { hourCycle: "h23" };
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", ...H24 });
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", ...H24 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", ...H24 });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", ...H24 });
let ahead = 0; // how much the server's clock is ahead of ours, in ms

/** Take over the server's clock from a snapshot's `now`. */
export function setNow(iso) {
  ahead = Date.parse(iso) - Date.now();
}

/** Milliseconds since the epoch by the server's clock. */
export function now() {
  return Date.now() + ahead;
}

/** "4 s", "3 min", "2 h 5 min", "6 d 1 h". */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min`;
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "0.4 s" below ten seconds, else as `duration`. */
export function fineDuration(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  return milliseconds < 10000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds);
}

/** The wall clock of a moment (ISO, or milliseconds) in the reader's zone. */
export function clockText(time) {
  return clock.format(new Date(time));
}

/** The same without seconds; takes milliseconds. */
export function minuteText(time) {
  return minutes.format(new Date(time));
}

/** The moment in full in the reader's zone. */
export function exactText(iso) {
  return exact.format(new Date(iso));
}

/** The same with the zone, for who points at a time. */
export function zonedText(iso) {
  return zoned.format(new Date(iso));
}

/** A <time> that says how long ago `iso` was and goes on by itself; empty without one. */
export function age(iso) {
  const node = document.createElement("time");
  setAge(node, iso);
  return node;
}

/** Let an age tell of another moment. */
export function setAge(node, iso) {
  if (node.dataset.age === (iso ?? "")) return;
  node.dataset.age = iso ?? "";
  if (iso) {
    node.dateTime = iso;
    node.title = zonedText(iso);
  } else {
    node.removeAttribute("datetime");
    node.removeAttribute("title");
  }
  refresh(node);
}

/** Let a <time> say in how long a moment comes, and go on by itself. */
export function setUntil(node, iso) {
  node.dataset.until = "";
  setAge(node, iso);
}

function refresh(node) {
  const iso = node.dataset.age;
  const past = iso ? now() - Date.parse(iso) : 0;
  const text = !iso ? "" : node.dataset.until === undefined ? duration(past) : past < 0 ? `in ${duration(-past)}` : "now";
  if (node.textContent !== text) node.textContent = text;
}

/** Bring all ages up to date, now and each second while somebody looks. */
export function keepAges() {
  const all = () => {
    if (document.hidden) return;
    for (const node of document.querySelectorAll("time[data-age]")) refresh(node);
  };
  setInterval(all, 1000);
  document.addEventListener("visibilitychange", all);
}

/** Turn the times that the server wrote (UTC, exact) into the reader's zone. */
export function localize(root) {
  for (const node of root.querySelectorAll("time[data-local]")) {
    node.title = zonedText(node.dateTime);
    node.textContent = exactText(node.dateTime);
  }
}
