// A log as it is written: only the lines in view are in the document, whatever the log's size.
//
//   const view = new LogView(element, {
//     url: "ws/log?replica=5&which=run",           // the websocket, from where the dashboard is mounted
//     download: "/logs/replica/5/run/download",    // link to the whole log; null for none
//     pageUrl: "/logs/replica/5/run/page",         // older and newer lines
//     searchUrl: "/logs/replica/5/run/search",
//     label: "run log",                            // for screen readers
//   });
//   view.close();
//
// It dispatches "state" on the element's CustomEvents: e.detail is "connecting", "live", "waiting" (no log yet), "ended",
// "gone", "paused" (older lines are looked at), "lost" or "signed-out".

import { pieces } from "./ansi.js";
import { Link } from "./link.js";
import { Bar } from "./logbar.js";
import { Lines } from "./loglines.js";

const MOST_LINES = 200_000;
const DROPPED_LINES = 20_000;
const PAGE_LINES = 1000;
const TAIL_LINES = 1000;
const OVERSCAN = 10;
const LONGEST_SHOWN = 20_000; // characters of a line; the rest is in the download
const HIGHEST = 30_000_000; // pixels that browsers can scroll

export class LogView {
  #lines = new Lines();
  #options;
  #link;
  #bar;
  #element;
  #box;
  #space;
  #follow;
  #note;
  #pool = [];
  #frame = 0;
  #oldest = 0;
  #newest = 0;
  #started = false; // a hello was heard: the lines are a part of the log
  #following = true;
  #detached = false; // the newest lines are not among those held
  #unseen = 0;
  #lastTop = 0;
  #loading = null;
  #marked = -1; // offset of the line that was jumped to
  #wrapped = false;
  #rowHeight = 18;
  #charWidth = 8;
  #state = "connecting";
  #resized = new ResizeObserver(() => this.#measure());

  constructor(element, options) {
    this.#element = element;
    this.#options = { download: null, label: "log", ...options };
    this.#build();
    this.#link = new Link({
      address: () => this.#address(),
      receive: (message) => this.#receive(message),
      changed: (state) => this.#linked(state),
    });
    this.#measure();
    this.#resized.observe(this.#box);
    this.#link.open();
  }

  get state() {
    return this.#state;
  }

  close() {
    this.#link.close();
    this.#resized.disconnect();
    this.#loading?.abort();
    cancelAnimationFrame(this.#frame);
    this.#bar.close();
    this.#element.replaceChildren();
  }

  /** Show the newest lines and stay there. */
  follow() {
    if (this.#detached) this.#restart();
    this.#following = true;
    this.#unseen = 0;
    this.#draw();
  }

  /** Show the line at a byte offset of the log. */
  async jump(offset) {
    this.#following = false;
    if (!this.#lines.holds(offset)) {
      this.#detach();
      const before = await this.#fetch({ before: offset, lines: PAGE_LINES / 2 });
      const after = before && (await this.#fetch({ after: offset, lines: PAGE_LINES / 2 }));
      if (!after) return;
      this.#lines.clear(after.start);
      this.#lines.append(after);
      if (before.start < after.start) this.#lines.prepend(cut(before, after.start));
    }
    this.#marked = this.#lines.offsets[this.#lines.indexOf(offset)];
    const row = this.#lines.top(this.#lines.indexOf(offset));
    this.#fit();
    this.#scroll((row + 0.5) * this.#rowHeight - this.#box.clientHeight / 2);
    this.#draw();
  }

  // --- what comes ---

  #address() {
    const place = this.#started ? `after=${this.#lines.end}` : `tail=${TAIL_LINES}`;
    return `${this.#options.url}&${place}`;
  }

  #receive(message) {
    if (message.type === "chunk") this.#take(message);
    else if (message.type === "hello") this.#begin(message);
    else if (message.type === "reset") this.#begin(message, true);
    else if (message.type === "gone") {
      this.#become("gone");
      this.#link.close();
    } else this.#become(message.type); // waiting, ended
  }

  #begin(message, anew = false) {
    this.#oldest = message.oldest;
    if (!this.#started || anew) {
      this.#lines.clear(message.start);
      this.#note.textContent = anew ? "Older lines were removed meanwhile; the log goes on here." : "";
    }
    this.#started = true;
    this.#newest = Math.max(this.#newest, message.end ?? 0);
    this.#become("live");
    this.#draw();
  }

  #take(chunk) {
    this.#newest = Math.max(this.#newest, chunk.end);
    if (this.#detached || chunk.start !== this.#lines.end) return;
    const before = this.#lines.length;
    this.#lines.append(chunk);
    if (!this.#following) this.#unseen += this.#lines.length - before;
    if (this.#lines.length > MOST_LINES) this.#dropSome();
    this.#become("live");
    this.#draw();
  }

  #dropSome() {
    if (this.#following) this.#lines.dropFirst(DROPPED_LINES);
    else this.#detach(); // who reads older lines keeps them
  }

  #linked(state) {
    if (state === "lost" || state === "signed-out" || (state === "connecting" && !this.#started)) this.#become(state);
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#bar.state(state);
    this.#element.dispatchEvent(new CustomEvent("state", { detail: state }));
    this.#draw();
  }

  // --- parts of the log that are not the newest ---

  #detach() {
    this.#detached = true;
    this.#link.pause();
    this.#become("paused");
  }

  #attach() {
    this.#detached = false;
    this.#become("connecting");
    this.#link.open();
  }

  #restart() {
    this.#loading?.abort();
    this.#loading = null;
    this.#started = false;
    this.#marked = -1;
    this.#lines.clear(0);
    this.#attach();
  }

  // One request at a time; null when it failed or another took its place.
  async #fetch(query) {
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    try {
      const url = `${this.#options.pageUrl}?${new URLSearchParams(query)}`;
      const answer = await fetch(url, { signal: loading.signal, headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error((await answer.json()).message);
      const page = await answer.json();
      this.#oldest = page.oldest;
      this.#newest = Math.max(this.#newest, page.newest);
      return page;
    } catch (error) {
      if (!loading.signal.aborted) this.#note.textContent = `More lines could not be loaded: ${error.message}`;
      return null;
    } finally {
      if (this.#loading === loading) this.#loading = null;
    }
  }

  async #loadOlder() {
    const page = await this.#fetch({ before: this.#lines.start, lines: PAGE_LINES });
    if (!page || page.end !== this.#lines.start) return;
    if (page.start === page.end) this.#oldest = page.end;
    const rows = this.#lines.rows;
    this.#lines.prepend(page);
    const added = this.#lines.rows - rows;
    if (this.#lines.length > MOST_LINES) {
      this.#lines.dropLast(DROPPED_LINES);
      this.#detach();
    }
    this.#fit();
    this.#scroll(this.#box.scrollTop + added * this.#rowHeight);
    this.#draw();
  }

  async #loadNewer() {
    const end = this.#lines.end;
    const page = await this.#fetch({ after: end, lines: PAGE_LINES });
    if (!page || this.#lines.end !== end || !this.#detached) return;
    const fresh = page.start === end ? page : null;
    if (fresh && fresh.end > end) this.#lines.append(fresh);
    if (this.#lines.length > MOST_LINES) {
      this.#scroll(this.#box.scrollTop - this.#lines.dropFirst(DROPPED_LINES) * this.#rowHeight);
    }
    if (!fresh || this.#lines.end >= page.newest - 65536) this.#attach();
    this.#draw();
  }

  // --- what is seen ---

  #build() {
    const make = (name, className) => Object.assign(document.createElement(name), { className });
    this.#element.classList.add("log");
    this.#box = make("div", "log-box");
    this.#box.tabIndex = 0;
    this.#box.setAttribute("role", "log");
    this.#box.setAttribute("aria-live", "off");
    this.#box.setAttribute("aria-label", this.#options.label);
    this.#space = make("div", "log-space");
    this.#follow = Object.assign(make("button", "log-follow"), { type: "button", hidden: true });
    this.#note = make("p", "log-note");
    this.#note.setAttribute("role", "status");
    this.#bar = new Bar(this.#options, {
      jump: (offset) => this.jump(offset),
      hits: () => this.#draw(),
      wrap: (on) => this.#wrap(on),
      middle: () => this.#lines.offsets[this.#lines.lineAt(this.#firstRow())] ?? 0,
    });
    this.#box.append(this.#space);
    this.#element.replaceChildren(this.#bar.element, this.#note, this.#box, this.#follow);
    this.#box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#follow.addEventListener("click", () => this.follow());
    this.#box.addEventListener("keydown", (event) => {
      if (event.key === "End") this.follow();
    });
  }

  #measure() {
    const probe = Object.assign(document.createElement("div"), { className: "log-row" });
    const text = Object.assign(document.createElement("span"), { textContent: "0".repeat(100) });
    probe.append(text);
    this.#space.append(probe);
    const { height } = probe.getBoundingClientRect();
    const { width } = text.getBoundingClientRect();
    probe.remove();
    if (!height) return; // not shown now
    this.#rowHeight = Math.max(1, height);
    this.#charWidth = Math.max(1, width / 100);
    this.#lines.wrap(this.#wrapped ? Math.max(20, Math.floor(this.#box.clientWidth / this.#charWidth) - 2) : 0);
    this.#draw(true);
  }

  #wrap(on) {
    const offset = this.#lines.offsets[this.#lines.lineAt(this.#firstRow())];
    this.#wrapped = on;
    this.#element.classList.toggle("log-wrap", on);
    this.#measure();
    this.#fit();
    if (!this.#following && offset !== undefined) {
      this.#scroll(this.#lines.top(this.#lines.indexOf(offset)) * this.#rowHeight);
    }
  }

  #firstRow() {
    return Math.floor(this.#box.scrollTop / this.#rowHeight);
  }

  #scroll(top) {
    this.#box.scrollTop = Math.max(0, top);
    this.#lastTop = this.#box.scrollTop;
  }

  // The user's own scrolling: up ends the following, back to the bottom begins it again.
  #scrolled() {
    const box = this.#box;
    const up = box.scrollTop < this.#lastTop - 1;
    const bottom = box.scrollTop + box.clientHeight >= box.scrollHeight - this.#rowHeight;
    if (up && !bottom) this.#following = false;
    else if (bottom && !this.#detached) {
      this.#following = true;
      this.#unseen = 0;
    }
    this.#lastTop = box.scrollTop;
    this.#draw();
  }

  #draw(all = false) {
    if (all) for (const node of this.#pool) node.line = null;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #fit() {
    const height = `${Math.min(HIGHEST, this.#lines.rows * this.#rowHeight)}px`;
    if (this.#space.style.height !== height) this.#space.style.height = height;
    const columns = Math.min(LONGEST_SHOWN, this.#lines.longest) + 2;
    const width = this.#wrapped ? "100%" : `${Math.ceil(columns * this.#charWidth)}px`;
    if (this.#space.style.minWidth !== width) this.#space.style.minWidth = width;
  }

  #paint() {
    this.#fit();
    if (this.#following) this.#scroll(this.#box.scrollHeight);
    const first = Math.max(0, this.#lines.lineAt(this.#firstRow()) - OVERSCAN);
    const lastRow = this.#firstRow() + Math.ceil(this.#box.clientHeight / this.#rowHeight);
    const last = Math.min(this.#lines.length - 1, this.#lines.lineAt(lastRow) + OVERSCAN);
    this.#grow(last - first + 1);
    const unused = new Set(this.#pool);
    for (let index = first; index <= last; index++) {
      const node = this.#pool[modulo(index + this.#lines.first, this.#pool.length)];
      unused.delete(node);
      this.#place(node, index);
    }
    for (const node of unused) node.element.hidden = true;
    this.#follow.hidden = this.#following || !this.#lines.length;
    this.#follow.textContent = this.#unseen ? `Follow (${this.#unseen.toLocaleString()} new)` : "Follow";
    this.#fill();
  }

  // Load more where the view comes near an end of what is held.
  #fill() {
    if (this.#loading || !this.#started || !this.#lines.length) return;
    const box = this.#box;
    const margin = box.clientHeight * 2;
    if (box.scrollTop < margin && this.#lines.start > this.#oldest && !this.#following) this.#loadOlder();
    else if (this.#detached && box.scrollTop + box.clientHeight > box.scrollHeight - margin) this.#loadNewer();
  }

  #grow(count) {
    if (this.#pool.length >= count) return;
    while (this.#pool.length < count + 2 * OVERSCAN) {
      const element = Object.assign(document.createElement("div"), { className: "log-row" });
      this.#space.append(element);
      this.#pool.push({ element, line: null });
    }
    for (const node of this.#pool) node.line = null; // each line has another place in the pool now
  }

  #place(node, index) {
    const text = this.#lines.texts[index];
    const style = this.#lines.styles[index];
    const top = this.#lines.top(index) * this.#rowHeight;
    const needle = this.#bar.needle;
    const marked = this.#lines.offsets[index] === this.#marked;
    const line = node.line;
    node.element.hidden = false;
    if (line?.top !== top) node.element.style.transform = `translateY(${top}px)`;
    if (line?.text !== text || line.style !== style || line.needle !== needle) {
      write(node.element, text, style, needle);
    }
    if (line?.marked !== marked) node.element.classList.toggle("log-marked", marked);
    node.line = { text, style, top, needle, marked };
  }
}

// Untrusted text goes in as text only.
function write(element, text, style, needle) {
  const shown = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)} …` : text;
  const parts = needle ? marked(pieces(shown, style), needle) : pieces(shown, style);
  if (parts.length === 1 && !parts[0].style && !parts[0].hit) {
    element.textContent = parts[0].text;
    return;
  }
  element.replaceChildren(
    ...parts.map((part) => {
      const node = document.createElement(part.hit ? "mark" : "span");
      if (part.style) node.className = part.style;
      node.textContent = part.text;
      return node;
    }),
  );
}

// The pieces, cut where the text that is looked for begins and ends.
function marked(parts, needle) {
  const text = parts.map((part) => part.text).join("").toLowerCase();
  const edges = [];
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
    edges.push([at, at + needle.length]);
  }
  if (!edges.length) return parts;
  const found = [];
  let place = 0;
  for (const part of parts) {
    const end = place + part.text.length;
    let from = place;
    for (const [start, stop] of edges) {
      if (stop <= from || start >= end) continue;
      if (start > from) found.push({ text: part.text.slice(from - place, start - place), style: part.style });
      const until = Math.min(stop, end);
      const begin = Math.max(start, from);
      found.push({ text: part.text.slice(begin - place, until - place), style: part.style, hit: true });
      from = until;
    }
    if (from < end) found.push({ text: part.text.slice(from - place), style: part.style });
    place = end;
  }
  return found;
}

// The page without what lies at and behind `offset`.
function cut(page, offset) {
  if (page.end <= offset) return page;
  const text = page.text.slice(0, page.text.lastIndexOf("\n") + 1);
  return { ...page, end: offset, text, breaks: page.breaks?.slice(0, -1) };
}

function modulo(value, size) {
  return ((value % size) + size) % size;
}
