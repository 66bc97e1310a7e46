// The feed of events: every event once and in order, over a websocket that comes back by itself.
//
//   const feed = new Feed({ after: cursor, service: "name" or null });
//   feed.addEventListener("event", (e) => ...)   e.detail: an event {id, at, service, kind, object_id, revision, ...}
//   feed.addEventListener("batch", (e) => ...)   e.detail: array of the same events, at most one batch per frame, and
//                                                fewer the longer it takes to draw one
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
const REST = 5; // times as long as a batch has kept the page busy nothing is drawn after it
const LONGEST_REST = 500;

export class Feed extends EventTarget {
  #link;
  #batch = [];
  #frame = 0;
  #timer = 0;
  #rested = 0; // when the next batch may be drawn, as performance.now()

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
    // A frame that was asked for does not come once the page is hidden, and who comes back has waited enough.
    document.addEventListener("visibilitychange", () => this.#flush());
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
    this.#draw();
  }

  #draw() {
    const wait = document.hidden ? HIDDEN_WAIT : this.#rested - performance.now(); // a hidden page has no frames
    if (wait > 0) this.#timer ||= setTimeout(() => this.#drawNow(), wait);
    else this.#drawNow();
  }

  #drawNow() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (document.hidden) this.#flush();
    else this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
    const batch = this.#batch;
    this.#batch = [];
    if (batch.length === 0) return;
    const began = performance.now();
    this.#tell("batch", batch);
    setTimeout(() => { // after the frame, so that layout and paint count
      const now = performance.now();
      this.#rested = now + Math.min(LONGEST_REST, REST * (now - began));
    });
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
