// The feed of events: one websocket that comes back by itself, every event once and in order.
//
//   const feed = new Feed({ after: cursor, service: "name" or null });
//   feed.addEventListener("event", (e) => ...)   e.detail: one event {id, at, service, kind, object_id, number, revision, ...}
//   feed.addEventListener("batch", (e) => ...)   e.detail: array of the same events, at most one batch per frame
//   feed.addEventListener("state", (e) => ...)   e.detail: {state, since, heard}; the same as feed.state, feed.since, feed.heard
//   feed.addEventListener("reset", (e) => ...)   e.detail: {reason}. Events are missing: take a new snapshot, then
//                                              feed.resume(snapshot.cursor)
//   feed.start(); feed.close();
//
// state is "connecting", "live", "lost" (it tries again by itself) or "signed-out" (log in again; it looks now and then).
// since: when it became so; heard: when the server was last heard of (both in milliseconds, as Date.now()).

const FIRST_WAIT = 200;
const LONGEST_WAIT = 5000;
const SIGNED_OUT_WAIT = 30000;
const SILENCE = 12000; // the server says something every 5 s
const HANDSHAKE = 10000;
const LOOK_EVERY = 2000;
const SIGNED_OUT_CODES = new Set([4401, 4403]);

export class Feed extends EventTarget {
  #url;
  #socket = null;
  #timer = 0;
  #watch = 0;
  #attempts = 0;
  #opened = 0;
  #batch = [];
  #frame = 0;
  #flushTimer = 0;
  #running = false;
  #look = (sign) => this.#check(sign);

  constructor({ after = 0, service = null, path = "/ws/feed" } = {}) {
    super();
    this.cursor = after;
    this.service = service;
    this.state = "connecting";
    this.since = Date.now();
    this.heard = 0;
    this.server = null;
    this.#url = path;
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    for (const [target, name] of this.#signs()) target.addEventListener(name, this.#look);
    this.#watch = setInterval(this.#look, LOOK_EVERY);
    this.#connect();
  }

  close() {
    this.#running = false;
    for (const [target, name] of this.#signs()) target.removeEventListener(name, this.#look);
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    this.#drop();
    this.#flush();
  }

  // Go on after a reset, from the cursor of a new snapshot.
  resume(cursor) {
    this.cursor = cursor;
    this.#attempts = 0;
    if (this.#running) this.#connect();
    else this.start();
  }

  #signs() {
    return [[document, "visibilitychange"], [window, "online"], [window, "pageshow"], [window, "focus"]];
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#drop();
    if (this.state !== "lost" && this.state !== "signed-out") this.#become("connecting");
    const query = new URLSearchParams({ after: String(this.cursor) });
    if (this.service !== null) query.set("service", this.service);
    const address = new URL(this.#url, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.search = query;
    const socket = new WebSocket(address);
    this.#socket = socket;
    this.#opened = Date.now();
    socket.onmessage = (message) => this.#receive(JSON.parse(message.data));
    socket.onclose = (closed) => this.#lost(closed.code);
  }

  // Let go of the socket; what it may still say is not for us.
  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #receive(message) {
    this.heard = Date.now();
    if (message.type === "events") this.#take(message);
    else if (message.type === "hello") {
      this.server = message.server;
      this.#attempts = 0;
      this.#become("live");
    } else if (message.type === "ping") this.cursor = Math.max(this.cursor, message.cursor);
    else if (message.type === "reset") this.#reset(message.reason);
  }

  #take(message) {
    const fresh = message.events.filter((event) => event.id > this.cursor);
    this.cursor = Math.max(this.cursor, message.cursor);
    for (const event of fresh) this.dispatchEvent(new CustomEvent("event", { detail: event }));
    if (fresh.length === 0) return;
    this.#batch.push(...fresh);
    if (document.hidden) this.#flushTimer ||= setTimeout(() => this.#flush(), 1000); // no frames in a hidden page
    else this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#flushTimer);
    this.#frame = this.#flushTimer = 0;
    if (this.#batch.length === 0) return;
    const detail = this.#batch;
    this.#batch = [];
    this.dispatchEvent(new CustomEvent("batch", { detail }));
  }

  #reset(reason) {
    this.#drop();
    this.#flush();
    this.#become("connecting");
    this.dispatchEvent(new CustomEvent("reset", { detail: { reason } }));
  }

  #lost(code) {
    const refused = this.heard < this.#opened; // not one word: the handshake failed
    this.#socket = null;
    if (SIGNED_OUT_CODES.has(code)) return this.#signedOut();
    if (this.state !== "signed-out") this.#become("lost");
    this.#again();
    if (refused) this.#askWhy();
  }

  // A refused handshake tells a page nothing; plain HTTP does.
  async #askWhy() {
    try {
      const answer = await fetch("/session", { cache: "no-store", redirect: "manual" });
      if (!this.#running || this.state === "live") return;
      if (answer.status === 401 || answer.status === 403) this.#signedOut();
      else if (this.state === "signed-out") this.#become("lost");
    } catch {
      // no server to ask: it stays lost
    }
  }

  #signedOut() {
    this.#become("signed-out");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), SIGNED_OUT_WAIT);
  }

  #again() {
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#attempts++);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), longest * (0.5 + Math.random() / 2));
  }

  // Called every two seconds and at every sign that the page or the network is back.
  #check(sign) {
    if (!this.#running) return;
    const now = Date.now();
    if (this.#socket === null) {
      if (this.#timer && sign && !document.hidden && now - this.#opened > FIRST_WAIT) this.#connect();
      return;
    }
    if (this.#socket.readyState === WebSocket.CONNECTING) {
      if (now - this.#opened < HANDSHAKE) return;
    } else if (now - Math.max(this.heard, this.#opened) < SILENCE) {
      return;
    }
    this.#become("lost");
    this.#connect();
  }

  #become(state) {
    if (this.state === state) return;
    this.since = Date.now();
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, since: this.since, heard: this.heard } }));
  }
}
