// How states and statuses look: each word keeps its spelling and gets a tone, so that colour never stands alone.

import { bdi, h, keyed, setAttribute, setText } from "./dom.js";

const TONES = {
  ok: ["READY", "SUCCEEDED", "SENT", "ON"],
  busy: ["PENDING", "PROVISIONING", "STARTING", "CONTROLLER_INIT", "REPLICA_INIT", "RUNNING", "QUEUED", "PROGRESSING"],
  warn: ["NOT_READY", "DRAINING", "SHUTTING_DOWN", "WAITING", "CANCELLING", "PREEMPTED", "PAUSED", "ABORTED"],
  bad: ["FAILED", "FAILED_PROVISION", "FAILED_INITIAL_DELAY", "FAILED_PROBING", "FAILED_CLEANUP"],
};
const toneOf = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.map((word) => [word, tone])));
const ORDER = ["READY", "NOT_READY", "STARTING", "PROVISIONING", "PENDING", "DRAINING", "SHUTTING_DOWN"];
const CELLS_MOST = 60;
const BREATHING_MOST = 60;

/** ok, busy, warn, bad or off. */
export const tone = (word) => toneOf.get(word) ?? "off";

/** Whether somebody should look at a service with this status. */
export const inTrouble = (service) => tone(service.status) === "bad" || service.status === "NOT_READY";

/** How many replicas are wanted: none of a service that is taken down. */
export const wanted = (service) => (service.desired === "UP" ? service.target : 0);

/** Nothing breathes on a page of more things than so many: a hundred animations would keep a processor busy. */
export const calm = (things) => document.documentElement.classList.toggle("still", things > BREATHING_MOST);

/** A badge: the word with its colour. */
export function badge(word) {
  const node = h("span", { class: "badge" });
  setBadge(node, word);
  return node;
}

/** Let a badge show another word. */
export function setBadge(node, word) {
  setText(node, word);
  setAttribute(node, "data-tone", tone(word));
}

/** "1 replica", "3 replicas". */
export const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

/** A reason as a sentence. */
export function sentence(text) {
  if (!text) return "";
  const key = /^\S*[._]\w/.test(text); // a key of the YAML stays as it is
  const first = key ? text : text[0].toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** A number of bytes as people read it. */
export function bytes(number) {
  const units = ["B", "KB", "MB", "GB"];
  let at = 0;
  for (; number >= 1000 && at < units.length - 1; at += 1) number /= 1000;
  return `${number < 10 && at > 0 ? number.toFixed(1) : Math.round(number)} ${units[at]}`;
}

/** Draw ready / target as a bar, see `drawStrip`. `address(replica)` makes cells links. */
export function drawCells(parent, service, replicas, address = null) {
  const many = drawStrip(parent, replicas, Math.max(0, wanted(service) - replicas.length), address);
  const states = tally(replicas).map(([state, number]) => `${number} ${state}`);
  const summary = [`${service.ready} of ${wanted(service)} ready`, ...states].join(", ");
  if (!address || many) {
    setAttribute(parent, "role", "img");
    setAttribute(parent, "aria-label", summary);
  } else parent.removeAttribute("role");
  setAttribute(parent, "title", summary);
}

/**
 * Draw a cell for each replica and hollow ones for those that are `missing`; where there are too many, a stretch for
 * each state. Whether there are too many.
 */
export function drawStrip(parent, replicas, missing, address = null) {
  const many = replicas.length + missing > CELLS_MOST;
  parent.classList.toggle("many", many);
  if (many) {
    const all = [...tally(replicas), ...(missing ? [["not there yet", missing]] : [])];
    keyed(parent, all, ([state]) => state, stretch, updateStretch);
  } else {
    const hollow = Array.from({ length: missing }, (_, place) => ({ number: `missing ${place}` }));
    keyed(parent, [...replicas, ...hollow], ({ number }) => number, (each) => cell(each, address), updateCell);
  }
  return many;
}

function cell(replica, address) {
  if (!replica.state) return h("i", { class: "cell hollow", title: "not there yet" });
  return address ? h("a", { class: "cell", href: address(replica) }) : h("i", { class: "cell" });
}

function updateCell(node, replica) {
  if (!replica.state) return;
  const told = `replica ${replica.number}: ${replica.state}`;
  setAttribute(node, "title", told);
  if (node.localName === "a") setAttribute(node, "aria-label", told);
  setAttribute(node, "data-tone", tone(replica.state));
  setAttribute(node, "data-state", replica.state);
}

const stretch = ([state]) => h("i", { class: "stretch", data: { tone: toneOf.has(state) ? tone(state) : "none" } });

function updateStretch(node, [state, number]) {
  setAttribute(node, "title", `${number} ${state}`);
  node.style.flexGrow = number;
}

/** [state, how many replicas are in it] in the order of a replica's life. */
export function tally(replicas) {
  const counts = new Map();
  for (const replica of replicas) counts.set(replica.state, (counts.get(replica.state) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
}

/** A link whose text is the address, for http(s) only; else the bare text. */
export function addressLink(address) {
  if (!/^https?:\/\//i.test(address)) return bdi(address);
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer", class: "address" }, address.replace(/^https?:\/\//i, ""));
}

/** A button that copies a text. */
export function copyButton(text, label) {
  return h("button", { type: "button", class: "copy small", "aria-label": label, title: label, data: { copy: text } }, "Copy");
}
