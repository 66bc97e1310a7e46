// One websocket that comes back by itself. What it carries, and where it goes on after a break, its owner knows.

const FIRST_WAIT = 200;
const LONGEST_WAIT = 5000;
const SIGNED_OUT_WAIT = 30000;
const SILENCE = 15000; // the server says something at least every 10 s
const HANDSHAKE = 10000;
const LOOK_EVERY = 2000;
const base = () => document.documentElement.dataset.base ?? "/"; // where the dashboard is mounted
const SIGNED_OUT_CODES = new Set([4401, 4403]);
const SIGNS = [
  [document, "visibilitychange"],
  [window, "online"],
  [window, "pageshow"],
  [window, "focus"],
];

/**
 * `address()` gives path (from where the dashboard is mounted) and query for the next attempt, `receive(message)` takes
 * each message (parsed JSON), `changed(state)` is told of a new `state`: "connecting", "live" (from the first message
 * on), "lost" (it tries again by itself), "signed-out" (it looks now and then) or "closed".
 */
export class Link {
  #owner;
  #socket = null;
  #timer = 0;
  #watch = 0;
  #attempts = 0;
  #opened = 0;
  #look = (sign) => this.#check(sign);

  constructor({ address, receive, changed }) {
    this.#owner = { address, receive, changed };
    this.state = "closed";
    this.since = Date.now();
    this.heard = 0;
  }

  open() {
    if (this.state === "closed") {
      for (const [target, name] of SIGNS) target.addEventListener(name, this.#look);
      this.#watch = setInterval(() => this.#check(null), LOOK_EVERY);
    }
    this.#attempts = 0;
    this.#connect();
  }

  close() {
    for (const [target, name] of SIGNS) target.removeEventListener(name, this.#look);
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    this.#drop();
    this.#become("closed");
  }

  /** Stop until the next `open`, but stay as it is to the eye: the owner fetches what it needs to go on. */
  pause() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#drop(true);
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#drop();
    if (this.state !== "lost" && this.state !== "signed-out") this.#become("connecting");
    const address = new URL(this.#owner.address(), new URL(base(), location.href));
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.#socket = socket;
    this.#opened = Date.now();
    socket.onmessage = (message) => this.#receive(JSON.parse(message.data));
    socket.onclose = (closed) => this.#lost(closed.code);
  }

  // Let go of the socket; what it may still say is not for us. Browsers complain of one that is closed before it opened:
  // unless it may be stuck, it is closed then.
  #drop(gently = false) {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onmessage = socket.onclose = null;
    if (gently && socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  #receive(message) {
    this.heard = Date.now();
    this.#attempts = 0;
    this.#become("live");
    if (message.type !== "ping" || "cursor" in message) this.#owner.receive(message);
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
      const answer = await fetch(`${base()}session`, { cache: "no-store", redirect: "manual" });
      if (this.state === "closed" || this.state === "live") return;
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

  // Called every two seconds, and at every sign that the page or the network is back.
  #check(sign) {
    const now = Date.now();
    if (this.#socket === null) {
      if (this.#timer && sign && !document.hidden && now - this.#opened > FIRST_WAIT) this.#connect();
      return;
    }
    const silence = now - Math.max(this.heard, this.#opened);
    if (silence < (this.#socket.readyState === WebSocket.CONNECTING ? HANDSHAKE : SILENCE)) return;
    this.#become("lost");
    this.#connect();
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.since = Date.now();
    this.#owner.changed(state);
  }
}
