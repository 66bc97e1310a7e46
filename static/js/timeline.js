// The timeline of events, newest first, with older pages on demand.

import { bdi, fill, h, keyed, setText, show } from "./dom.js";
import * as paths from "./paths.js";
import { age } from "./time.js";
import { sentence, tone } from "./words.js";

const APPLIES = new Set(["created", "updated", "revived", "restarted", "rolled_back"]);
const TONED = new Set(["replica", "operation", "rollout"]);
const DOORS = { admin: " in the administration", api: " through the API" };
const PARTS = new Set(["controller", "job", "probe"]);

/** Draws a state's timeline into `list`; `button` asks for the next page of `url`; `nothing` says that there is none. */
export class TimelineView {
  constructor({ timeline, url, list, button, redraw, nothing = null }) {
    Object.assign(this, { timeline, list, button, nothing });
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const address = new URL(url, location.href);
        address.searchParams.set("before", timeline.events.at(-1).id);
        const response = await fetch(address, { headers: { Accept: "application/json" } });
        if (response.ok) timeline.addOlder(await response.json());
      } finally {
        button.disabled = false;
      }
      redraw();
    });
  }

  draw() {
    keyed(this.list, this.timeline.events, (event) => event.id, entry);
    show(this.button, this.timeline.more);
    if (this.nothing) show(this.nothing, this.timeline.events.length === 0);
  }
}

function entry(event) {
  const by = PARTS.has(event.actor) ? null : h("span", { class: "by", title: whence(event) }, "by ", bdi(event.actor), DOORS[event.source] ?? null);
  return h(
    "li",
    { data: { tone: TONED.has(event.kind) ? tone(event.new) : "off", event: event.id } },
    h("div", { class: "what" }, subject(event), " ", h("span", {}, phrase(event)), change(event), by),
    event.reason ? h("div", { class: "why" }, bdi(sentence(event.reason))) : null,
    age(event.at),
  );
}

/** By which door, from where and with which token: for whoever hovers over the name. */
const whence = (event) =>
  [event.source, event.address && `from ${event.address}`, event.token && `with the token ${event.token}…`].filter(Boolean).join(", ") || null;

const phrase = (event) => event.trigger.replace(/^(version|rollout)_/, "").replaceAll("_", " ");

function subject(event) {
  if (event.kind === "version") return h("b", {}, `Version ${event.version}`);
  if (event.kind === "channel") return h("b", {}, "Notices");
  if (event.kind === "decision") return h("b", {}, "Autoscaler");
  if (event.kind === "rollout") return h("b", {}, `Rollout of v${event.version}`);
  if (event.number === null) return h("b", {}, "Service");
  const address = paths.replica(event.service, event.number);
  const operation = event.kind === "operation" ? h("span", { class: "muted" }, ` operation ${event.object_id}`) : null;
  return h("span", {}, h("a", { href: address }, `Replica ${event.number}`), operation);
}

function change(event) {
  if (event.kind === "service" && APPLIES.has(event.trigger)) return h("span", { class: "muted" }, `v${event.version}`);
  if (!event.new || event.new === event.old || event.new === event.trigger.toUpperCase()) return null;
  return h("span", { class: "became", data: { tone: tone(event.new) } }, event.new);
}

/** A list of the operations of a service or a replica. */
export function drawOperations(body, operations, can, { reason = true } = {}) {
  keyed(
    body,
    operations,
    (operation) => operation.id,
    () => h("li", { class: "operation" }),
    (node, operation) => fill(node, operationParts(operation, can, reason)),
  );
}

function operationParts(operation, can, reason) {
  return [
    h(
      "div",
      { class: "what" },
      h("b", {}, operation.kind === "LAUNCH" ? "Launch" : "Down"),
      ` of replica ${operation.number}`,
      h("span", { class: "badge", data: { tone: tone(operation.status) } }, operation.status),
      operation.attempts > 1 ? h("span", { class: "muted" }, `attempt ${operation.attempts}`) : null,
    ),
    reason && operation.reason ? h("div", { class: "why" }, bdi(sentence(operation.reason))) : null,
    operation.waits_for ? h("div", { class: "waits" }, "Waits for: ", bdi(operation.waits_for)) : null,
    operation.cancel_reason ? h("div", { class: "why" }, bdi(sentence(operation.cancel_reason))) : null,
    operation.error ? h("div", { class: "error" }, bdi(sentence(operation.error))) : null,
    age(operation.ended_at ?? operation.created_at),
    can.operate ? h("div", { class: "buttons" }, ...operationButtons(operation)) : null,
  ];
}

/** The buttons that apply to an operation: cancel a live launch, hurry a wait, try a failed down again. */
export function operationButtons(operation) {
  const thing = `the launch of replica ${operation.number}`;
  const live = ["QUEUED", "RUNNING", "WAITING"].includes(operation.status);
  const again = operation.status === "WAITING" || (operation.status === "FAILED" && operation.kind === "DOWN");
  return [
    live && operation.kind === "LAUNCH"
      ? h(
          "button",
          { type: "button", class: "small", data: { dialog: "dialog-cancel", action: paths.cancel(operation.id), fillThing: thing } },
          "Cancel",
        )
      : null,
    again
      ? h(
          "button",
          {
            type: "button",
            class: "small",
            data: {
              dialog: "dialog-retry",
              action: paths.retry(operation.id),
              fillThing: `${operation.kind === "LAUNCH" ? "the launch" : "the down"} of replica ${operation.number}`,
            },
          },
          "Retry now",
        )
      : null,
  ];
}

/** Set a count beside a heading. */
export function setCount(id, text) {
  setText(document.getElementById(id), String(text));
}
