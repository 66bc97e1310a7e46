// The feed of events: every event once and in order, over a websocket that comes back by itself.
//
//   const feed = new Feed({ after: cursor, service: "name" or null });
//   feed.addEventListener("event", (e) => ...)   e.detail: an event {id, at, service, kind, object_id, revision, ...}
//   feed.addEventListener("batch", (e) => ...)   e.detail: array of the same events, at most one batch per frame
//   feed.addEventListener("state", (e) => ...)   e.detail: {state, since, heard}
//   feed.addEventListener("reset", (e) => ...)   e.detail: {reason}. Events are missing: take a new snapshot, then
//                                                feed.resume(snapshot.cursor)
//   feed.start(); feed.close();
//
// state: "connecting", "live", "lost" (it tries again by itself), "signed-out" (log in again; it looks now and then),
// "closed". since: when it became so; heard: when the server was last heard of (milliseconds, as Date.now()). The feed
// has the three as properties too.

import { Link } from "./link.js";

const HIDDEN_WAIT = 1000;

export class Feed extends EventTarget {
  #link;
  #batch = [];
  #frame = 0;
  #timer = 0;

  constructor({ after = 0, service = null } = {}) {
    super();
    this.cursor = after;
    this.service = service;
    this.server = null;
    this.#link = new Link({
      address: () => this.#address(),
      receive: (message) => this.#receive(message),
      changed: (state) => this.#tell("state", { state, since: this.since, heard: this.heard }),
    });
  }

  get state() {
    return this.#link.state;
  }

  get since() {
    return this.#link.since;
  }

  get heard() {
    return this.#link.heard;
  }

  start() {
    if (this.state === "closed") this.#link.open();
  }

  close() {
    this.#link.close();
    this.#flush();
  }

  /** Go on after a reset, from the cursor of a new snapshot. */
  resume(cursor) {
    this.cursor = cursor;
    this.#link.open();
  }

  #address() {
    const query = new URLSearchParams({ after: String(this.cursor) });
    if (this.service !== null) query.set("service", this.service);
    return `ws/feed?${query}`;
  }

  #receive(message) {
    if (message.type === "events") this.#take(message);
    else if (message.type === "hello") this.server = message.server;
    else if (message.type === "ping") this.cursor = Math.max(this.cursor, message.cursor);
    else if (message.type === "reset") this.#reset(message.reason);
  }

  #take(message) {
    const fresh = message.events.filter((event) => event.id > this.cursor);
    this.cursor = Math.max(this.cursor, message.cursor);
    if (fresh.length === 0) return;
    for (const event of fresh) this.#tell("event", event);
    this.#batch.push(...fresh);
    if (document.hidden) this.#timer ||= setTimeout(() => this.#flush(), HIDDEN_WAIT); // a hidden page has no frames
    else this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
    const batch = this.#batch;
    this.#batch = [];
    if (batch.length) this.#tell("batch", batch);
  }

  #reset(reason) {
    this.#link.pause();
    this.#flush();
    this.#tell("reset", { reason });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
