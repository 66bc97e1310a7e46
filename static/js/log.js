// A log as it is written: its newest lines, what comes, and older parts as they are looked at, whatever the log's size.
//
//   const view = new LogView(element, {
//     url: "ws/log?replica=5&which=run",           // the websocket, from where the dashboard is mounted
//     log: "/logs/replica/5/run",                  // below it: download, page, search, span
//     label: "run log",                            // for screen readers
//     picked: (from, to) => {},                    // lines were picked by their offsets; the link to them is the page's
//     link: (from, to) => "https://...",           // the address of lines
//   });
//   view.close();
//
// It dispatches "state" on the element's CustomEvents: e.detail is "connecting", "live", "waiting" (no log yet), "ended",
// "gone", "paused" (older lines are looked at), "lost" or "signed-out".

import { Link } from "./link.js";
import { Bar } from "./logbar.js";
import { Lines } from "./loglines.js";
import { Pane } from "./logpane.js";
import { LogReader } from "./logreader.js";

const MOST_LINES = 200_000;
const DROPPED_LINES = 20_000;
const PAGE_LINES = 1000;
const TAIL_LINES = 1000;

export class LogView {
  #lines = new Lines();
  #options;
  #reader;
  #link;
  #bar;
  #pane;
  #element;
  #note;
  #oldest = 0;
  #started = false; // a hello was heard: the lines are a part of the log
  #detached = false; // the newest lines are not among those held
  #range = null; // {start, end} where only a part of the time is looked at; `end` null: until now
  #picked = null; // offsets of the first and the last line that were picked
  #state = "connecting";

  constructor(element, options) {
    this.#element = element;
    this.#options = { label: "log", picked: () => {}, link: null, ...options };
    this.#reader = new LogReader(this.#options.log);
    this.#build();
    this.#link = new Link({
      address: () => this.#address(),
      receive: (message) => this.#receive(message),
      changed: (state) => this.#linked(state),
    });
    this.#pane.begin();
    this.#link.open();
  }

  get state() {
    return this.#state;
  }

  close() {
    this.#link.close();
    this.#reader.abort();
    this.#pane.close();
    this.#bar.close();
    this.#element.replaceChildren();
  }

  /** Show the newest lines and stay there. */
  follow() {
    if (this.#range?.end != null) return this.#pane.center(Math.max(0, this.#lines.length - 1));
    if (this.#detached) this.#restart();
    this.#pane.following = true;
    this.#pane.unseen = 0;
    return this.#pane.draw();
  }

  /** Show the line at a byte offset of the log, and mark it, or all lines up to that at `last`. */
  async jump(offset, last = offset) {
    if (!(await this.#show(offset))) return;
    const begin = this.#lines.indexOf(offset);
    const end = this.#lines.holds(last) ? this.#lines.indexOf(last) : begin;
    this.#mark(this.#lines.offsets[begin], this.#lines.offsets[end]);
    this.#pane.center(begin);
  }

  // Hold the lines around an offset.
  async #show(offset) {
    this.#pane.following = false;
    if (this.#lines.holds(offset)) return true;
    this.#detach();
    const [before, after] = await this.#reader.around(offset, PAGE_LINES / 2, this.#bounds());
    if (!after) return this.#told(this.#reader.trouble);
    this.#oldest = after.oldest;
    this.#lines.clear(after.start);
    this.#lines.append(after);
    if (before.start < after.start) this.#lines.prepend(before);
    return true;
  }

  #mark(from, to) {
    this.#picked = from === null ? null : [from, to];
    this.#pane.marked = (offset) => this.#picked !== null && offset >= this.#picked[0] && offset <= this.#picked[1];
    this.#pane.draw();
  }

  #pick(index, more) {
    const offset = this.#lines.offsets[index];
    const from = more && this.#picked ? Math.min(offset, this.#picked[0]) : offset;
    const to = more && this.#picked ? Math.max(offset, this.#picked[1]) : offset;
    this.#mark(from, to);
    this.#options.picked(from, to);
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
      this.#told(anew ? "Older lines were removed meanwhile; the log goes on here." : "");
    }
    this.#started = true;
    this.#become("live");
    this.#pane.draw();
  }

  #take(chunk) {
    if (this.#detached || chunk.start !== this.#lines.end) return;
    const before = this.#lines.length;
    this.#lines.append(chunk);
    if (!this.#pane.following) this.#pane.unseen += this.#lines.length - before;
    if (this.#lines.length > MOST_LINES) this.#dropSome();
    this.#become("live");
    this.#pane.draw();
  }

  #dropSome() {
    if (this.#pane.following) this.#lines.dropFirst(DROPPED_LINES);
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
    this.#pane.draw();
  }

  #told(text) {
    this.#note.textContent = text;
    return false;
  }

  // --- parts of the log that are not the newest ---

  #detach() {
    this.#detached = true;
    this.#pane.atEnd = false;
    this.#link.pause();
    this.#become("paused");
  }

  #attach() {
    this.#detached = false;
    this.#pane.atEnd = true;
    this.#become("connecting");
    this.#link.open();
  }

  #restart() {
    this.#reader.abort();
    this.#started = false;
    this.#mark(null);
    this.#lines.clear(0);
    this.#attach();
  }

  #bounds() {
    const bounds = {};
    if (this.#range) bounds.floor = this.#range.start;
    if (this.#range?.end != null) bounds.ceiling = this.#range.end;
    return bounds;
  }

  /** Show what was read between two moments (ms; null: no bound) alone. */
  async #between(from, to) {
    this.#range = null;
    this.#told("");
    if (from === null && to === null) return this.follow();
    const span = await this.#reader.span(from, to);
    if (!span) return this.#told(this.#reader.trouble);
    if (!span.known) return this.#told("Nobody noted when the lines of this log were read.");
    this.#range = span;
    this.#detach();
    this.#lines.clear(span.start);
    const page = await this.#reader.page({ after: span.start, lines: PAGE_LINES, ...this.#bounds() });
    if (!page) return this.#told(this.#reader.trouble);
    this.#lines.clear(page.start);
    this.#lines.append(page);
    if (page.start === page.end) this.#told("Nothing was written in this time.");
    this.#started = true;
    this.#pane.following = false;
    this.#pane.scroll(0);
    return this.#pane.draw();
  }

  async #loadOlder() {
    const page = await this.#reader.page({ before: this.#lines.start, lines: PAGE_LINES, ...this.#bounds() });
    if (!page) return this.#told(this.#reader.trouble);
    this.#oldest = page.oldest;
    if (page.end !== this.#lines.start) return false;
    if (page.start === page.end) this.#oldest = page.end;
    const rows = this.#lines.rows;
    this.#lines.prepend(page);
    const added = this.#lines.rows - rows;
    if (this.#lines.length > MOST_LINES) {
      this.#lines.dropLast(DROPPED_LINES);
      this.#detach();
    }
    return this.#pane.shift(added);
  }

  async #loadNewer() {
    const { end } = this.#lines;
    const page = await this.#reader.page({ after: end, lines: PAGE_LINES, ...this.#bounds() });
    if (!page) return this.#told(this.#reader.trouble);
    this.#oldest = page.oldest;
    if (this.#lines.end !== end || !this.#detached) return false;
    const fresh = page.start === end ? page : null;
    if (fresh && fresh.end > end) this.#lines.append(fresh);
    if (this.#lines.length > MOST_LINES) this.#pane.shift(-this.#lines.dropFirst(DROPPED_LINES));
    const there = !fresh || this.#lines.end >= page.newest - 65536;
    if (there && this.#range?.end == null) this.#attach();
    return this.#pane.draw();
  }

  // Load more where the view comes near an end of what is held.
  #fill() {
    if (this.#reader.busy || !this.#started || !this.#lines.length) return;
    const floor = Math.max(this.#oldest, this.#range?.start ?? 0);
    const more = this.#detached && this.#lines.end < (this.#range?.end ?? Infinity);
    if (this.#pane.near("first") && this.#lines.start > floor && !this.#pane.following) this.#loadOlder();
    else if (more && this.#pane.near("last")) this.#loadNewer();
  }

  // --- what is seen ---

  #build() {
    this.#element.classList.add("log");
    this.#note = Object.assign(document.createElement("p"), { className: "log-note" });
    this.#note.setAttribute("role", "status");
    this.#pane = new Pane(this.#lines, this.#options.label, {
      follow: () => this.follow(),
      fill: () => this.#fill(),
      pick: (index, more) => this.#pick(index, more),
      needle: () => this.#bar.needle,
    });
    this.#bar = new Bar(this.#element, {
      label: this.#options.label,
      download: `${this.#options.log}/download`,
      search: (text, signal) => this.#reader.search(text, signal, this.#bounds()),
      jump: ([line]) => this.jump(line),
      before: ([line]) => line < (this.#lines.offsets[this.#pane.firstLine] ?? 0),
      same: ([one], [other]) => one === other,
      between: (from, to) => this.#between(from, to),
      copy: () => this.#copied(),
      link: this.#options.link && (() => this.#linkTo()),
      pane: this.#pane,
    });
    this.#element.replaceChildren(this.#bar.element, this.#note, ...this.#pane.elements);
  }

  // The lines that were picked, or those in view.
  #copied() {
    if (!this.#picked) return this.#pane.inView();
    const [first, last] = this.#picked.map((offset) => this.#lines.indexOf(offset));
    return Array.from({ length: last - first + 1 }, (_, place) => this.#lines.plain(first + place));
  }

  #linkTo() {
    const first = this.#lines.offsets[this.#pane.firstLine] ?? 0;
    return this.#options.link(...(this.#picked ?? [first, first]));
  }
}
