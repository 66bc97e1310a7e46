// How states and statuses look: each word keeps its spelling and gets a tone, so that colour never stands alone.

import { bdi, h, setAttribute, setText } from "./dom.js";

const TONES = {
  ok: ["READY", "SUCCEEDED", "SENT", "ON"],
  busy: ["PENDING", "PROVISIONING", "STARTING", "CONTROLLER_INIT", "REPLICA_INIT", "RUNNING", "QUEUED", "PROGRESSING"],
  warn: ["NOT_READY", "DRAINING", "SHUTTING_DOWN", "WAITING", "CANCELLING", "PREEMPTED", "PAUSED", "ABORTED"],
  bad: ["FAILED", "FAILED_PROVISION", "FAILED_INITIAL_DELAY", "FAILED_PROBING", "FAILED_CLEANUP"],
};
const toneOf = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.map((word) => [word, tone])));
const ORDER = ["READY", "NOT_READY", "STARTING", "PROVISIONING", "PENDING", "DRAINING", "SHUTTING_DOWN"];
const CELLS_MOST = 60;

/** ok, busy, warn, bad or off. */
export const tone = (word) => toneOf.get(word) ?? "off";

/** Whether somebody should look at a service with this status. */
export const inTrouble = (service) => tone(service.status) === "bad" || service.status === "NOT_READY";

/** How many replicas are wanted: none of a service that is taken down. */
export const wanted = (service) => (service.desired === "UP" ? service.target : 0);

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

/**
 * Draw ready / target as a bar: a cell for each live replica, hollow ones for those still missing; where there are too
 * many, a stretch for each state. `address(replica)` makes cells links.
 */
export function drawCells(parent, service, replicas, address = null) {
  const missing = Math.max(0, wanted(service) - replicas.length);
  const many = replicas.length + missing > CELLS_MOST;
  parent.classList.toggle("many", many);
  const nodes = many ? stretches(replicas, missing) : cells(replicas, missing, address);
  parent.replaceChildren(...nodes);
  const states = tally(replicas).map(([state, number]) => `${number} ${state}`);
  const summary = [`${service.ready} of ${wanted(service)} ready`, ...states].join(", ");
  if (!address || many) {
    setAttribute(parent, "role", "img");
    setAttribute(parent, "aria-label", summary);
  } else parent.removeAttribute("role");
  parent.title = summary;
}

function cells(replicas, missing, address) {
  const full = replicas.map((replica) =>
    h(address ? "a" : "i", {
      class: "cell",
      href: address ? address(replica) : null,
      title: `replica ${replica.number}: ${replica.state}`,
      "aria-label": address ? `replica ${replica.number}: ${replica.state}` : null,
      data: { tone: tone(replica.state), state: replica.state },
    }),
  );
  return [...full, ...Array.from({ length: missing }, () => h("i", { class: "cell hollow", title: "not there yet" }))];
}

function stretches(replicas, missing) {
  const all = tally(replicas).map(([state, number]) => [state, tone(state), number]);
  if (missing) all.push(["not there yet", "none", missing]);
  return all.map(([state, toned, number]) => {
    const node = h("i", { class: "stretch", title: `${number} ${state}`, data: { tone: toned } });
    node.style.flexGrow = number;
    return node;
  });
}

function tally(replicas) {
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
