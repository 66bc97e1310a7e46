// Several logs as one, as they are written: lines in the order in which they were read, a colour for each log.
//
//   const view = new MergedLog(element, { label: "logs", picked: (number, offset) => {}, link: (number, offset) => "..." });
//   view.choose([{ number: 3, id: 17 }]);   // replicas whose run logs are shown
//   view.jump(3, 4711);                     // the line at an offset of one of them

import { Link } from "./link.js";
import { Bar } from "./logbar.js";
import { Lines } from "./loglines.js";
import { Pane } from "./logpane.js";
import { LogReader } from "./logreader.js";
import { keyOf, MergedLines } from "./mergedlines.js";
import * as paths from "./paths.js";

const TAIL_LINES = 500;
const PAGE_LINES = 500;
const MOST_LINES = 100_000;
const DROPPED_LINES = 10_000;
const COLOURS = 8;
const STATES = ["lost", "signed-out", "connecting", "live", "waiting", "ended", "gone"]; // what is told of many

export class MergedLog {
  #sources = new Map();
  #lines = new MergedLines(this.#sources);
  #options;
  #bar;
  #pane;
  #note;
  #detached = false;
  #range = null; // {from, to} in ms, null for no bound
  #loading = false;
  #turn = 0; // what is under way for an earlier one is void

  constructor(element, options) {
    this.#options = options;
    this.#build(element);
    this.#pane.begin();
  }

  /** Show these replicas, `{number, id}` each, and no others. */
  choose(replicas) {
    const wanted = new Map(replicas.map((replica) => [replica.number, replica]));
    const same = wanted.size === this.#sources.size && [...wanted.keys()].every((number) => this.#sources.has(number));
    if (same) return;
    for (const [number, source] of this.#sources) {
      if (wanted.has(number)) continue;
      source.link.close();
      source.reader.abort();
      this.#sources.delete(number);
    }
    const fresh = replicas.filter(({ number }) => !this.#sources.has(number)).map((replica) => this.#add(replica));
    this.#lines.rebuild();
    this.#pane.measure();
    if (this.#range) this.#between(this.#range.from, this.#range.to);
    else if (this.#detached && fresh.length) this.follow();
    else for (const source of fresh) source.link.open();
    this.#tell();
  }

  /** Show the newest lines and stay there. */
  follow() {
    if (this.#range?.to != null) return this.#pane.center(Math.max(0, this.#lines.length - 1));
    if (this.#detached) this.#restart();
    this.#pane.following = true;
    this.#pane.unseen = 0;
    return this.#pane.draw();
  }

  /** Show and mark the line at an offset of one of the logs, with what the others said then. */
  async jump(number, offset) {
    this.#pane.following = false;
    if (this.#lines.indexOf(number, offset) < 0 && !(await this.#loadAround(number, offset))) return;
    const index = this.#lines.indexOf(number, offset);
    if (index < 0) return;
    this.#mark(this.#lines.row(index).key);
    this.#pane.center(index);
  }

  #mark(marked) {
    this.#pane.marked = (key) => key === marked;
    this.#pane.draw();
  }

  #add({ number, id }) {
    const source = {
      number,
      place: number,
      who: { label: `#${number}`, colour: number % COLOURS },
      lines: new Lines(),
      moments: [],
      more: false,
      newer: false,
      oldest: 0,
      bounds: {},
      started: false,
      state: "connecting",
      reader: new LogReader(paths.replicaLog(id, "run")),
    };
    const place = () => (source.started ? `after=${source.lines.end}` : `tail=${TAIL_LINES}`);
    source.link = new Link({
      address: () => `ws/log?replica=${id}&which=run&${place()}`,
      receive: (message) => this.#receive(source, message),
      changed: (state) => state !== "live" && state !== "closed" && this.#become(source, state),
    });
    this.#sources.set(number, source);
    return source;
  }

  // --- what comes ---

  #receive(source, message) {
    if (message.type === "chunk") this.#take(source, message);
    else if (message.type === "hello" || message.type === "reset") this.#begin(source, message);
    else {
      if (message.type === "gone") source.link.close();
      this.#become(source, message.type); // waiting, ended, gone
    }
  }

  #begin(source, message) {
    source.oldest = message.oldest;
    if (!source.started || message.type === "reset") source.lines.clear(message.start);
    source.started = true;
    source.more = source.lines.start > source.oldest;
    this.#lines.rebuild();
    this.#become(source, "live");
  }

  #take(source, chunk) {
    if (this.#detached || chunk.start !== source.lines.end) return;
    const before = source.lines.length;
    source.lines.append(chunk);
    const added = this.#lines.added(source, before);
    if (!this.#pane.following) this.#pane.unseen += added;
    else if (this.#lines.length > MOST_LINES) this.#lines.dropFirst(DROPPED_LINES);
    if (this.#lines.length > 2 * MOST_LINES) this.#detach(); // who reads older lines keeps them
    this.#become(source, "live");
  }

  #become(source, state) {
    source.state = state;
    this.#tell();
  }

  #tell() {
    const states = new Set([...this.#sources.values()].map(({ state }) => state));
    this.#bar.state(this.#detached ? "paused" : (STATES.find((state) => states.has(state)) ?? "waiting"));
    this.#pane.draw();
  }

  #told(text) {
    this.#note.textContent = text;
    return false;
  }

  // --- parts that are not the newest ---

  #detach() {
    this.#detached = true;
    this.#pane.atEnd = false;
    for (const { link } of this.#sources.values()) link.pause();
    this.#tell();
  }

  #restart() {
    this.#turn += 1;
    this.#detached = false;
    this.#pane.atEnd = true;
    this.#mark(null);
    for (const source of this.#sources.values()) {
      source.reader.abort();
      Object.assign(source, { started: false, newer: false, bounds: {}, state: "connecting" });
      source.lines.clear(0);
      source.link.open();
    }
    this.#lines.rebuild();
    this.#tell();
  }

  // Hold what all logs have around the moment of a line.
  async #loadAround(number, offset) {
    const chosen = this.#sources.get(number);
    if (!chosen) return false;
    const turn = (this.#turn += 1);
    this.#detach();
    const pages = await chosen.reader.around(offset, PAGE_LINES, chosen.bounds);
    const moment = pages[1]?.times?.[0]?.[1] ?? null;
    await Promise.all(
      [...this.#sources.values()].map(async (source) => {
        if (source === chosen) return this.#hold(source, pages, turn);
        const span = moment === null ? null : await source.reader.span(moment, null);
        const near = span?.known ? await source.reader.around(span.start, PAGE_LINES, source.bounds) : [null, null];
        return this.#hold(source, near, turn);
      }),
    );
    if (turn !== this.#turn) return false;
    this.#lines.rebuild();
    return pages[1] !== null || this.#told(chosen.reader.trouble);
  }

  // A source has these two pages and nothing else; without them it has nothing at all for now.
  #hold(source, [before, after], turn) {
    if (turn !== this.#turn) return;
    source.lines.clear(after?.start ?? 0);
    Object.assign(source, { started: after !== null, more: false, newer: false });
    if (!after) return;
    source.lines.append(after);
    if (before.start < after.start) source.lines.prepend(before);
    this.#learn(source, after);
  }

  #learn(source, page) {
    source.oldest = page.oldest;
    source.more = source.lines.start > Math.max(source.oldest, source.bounds.floor ?? 0);
    source.newer = this.#detached && source.lines.end < (source.bounds.ceiling ?? page.newest);
  }

  /** Show what was read between two moments (ms; null: no bound) alone. */
  async #between(from, to) {
    this.#told("");
    this.#range = from === null && to === null ? null : { from, to };
    if (!this.#range) return this.#detached ? this.#restart() || this.follow() : this.follow();
    const turn = (this.#turn += 1);
    this.#detach();
    const strangers = [];
    await Promise.all(
      [...this.#sources.values()].map(async (source) => {
        const span = await source.reader.span(from, to);
        source.bounds = span?.known ? { floor: span.start, ...(span.end === null ? {} : { ceiling: span.end }) } : {};
        if (!span?.known) strangers.push(source.who.label);
        const query = { after: span?.start ?? 0, lines: PAGE_LINES, ...source.bounds };
        const page = span?.known ? await source.reader.page(query) : null;
        this.#hold(source, [{ start: Infinity }, page], turn);
      }),
    );
    if (turn !== this.#turn) return false;
    if (strangers.length) this.#told(`Nobody noted when the lines of ${strangers.join(", ")} were read.`);
    this.#lines.rebuild();
    if (!this.#lines.length && !strangers.length) this.#told("Nothing was written in this time.");
    this.#pane.following = false;
    this.#pane.scroll(0);
    return this.#pane.draw();
  }

  // Load more where the view comes near an end of what is held.
  async #fill() {
    if (this.#loading || !this.#lines.length) return;
    const sources = [...this.#sources.values()].filter(({ started, moments }) => started && moments.length);
    const older = sources.filter(({ more }) => more).sort((a, b) => b.moments[0] - a.moments[0])[0];
    const newer = sources.filter((source) => source.newer).sort((a, b) => a.moments.at(-1) - b.moments.at(-1))[0];
    const attached = this.#detached && this.#range?.to == null && !newer;
    if (older && !this.#pane.following && this.#pane.near("first")) await this.#load(older, "prepend");
    else if (this.#detached && newer && this.#pane.near("last")) await this.#load(newer, "append");
    else if (attached && this.#pane.near("last")) this.#attach();
  }

  async #load(source, how) {
    this.#loading = true;
    const turn = this.#turn;
    const { lines } = source;
    const place = how === "prepend" ? { before: lines.start } : { after: lines.end };
    const page = await source.reader.page({ ...place, lines: PAGE_LINES, ...source.bounds });
    this.#loading = false;
    if (!page) return this.#told(source.reader.trouble);
    if (turn !== this.#turn) return false;
    const joins = how === "prepend" ? page.end === lines.start : page.start === lines.end;
    if (!joins || page.start === page.end) source[how === "prepend" ? "more" : "newer"] = false;
    else {
      lines[how](page);
      this.#learn(source, page);
    }
    return this.#pane.shift(this.#lines.rebuild());
  }

  #attach() {
    this.#detached = false;
    this.#pane.atEnd = true;
    for (const { link } of this.#sources.values()) link.open();
    this.#tell();
  }

  async #search(text, signal) {
    const all = await Promise.all(
      [...this.#sources.values()].map(async (source) => {
        const found = await source.reader.search(text, signal, source.bounds).catch((error) => {
          if (signal.aborted || error.name === "AbortError") throw error;
          return { count: 0, matches: [], complete: source.state === "waiting" }; // no log yet, or not any more
        });
        return { ...found, matches: found.matches.map(([offset, , time]) => ({ number: source.number, offset, time: time ?? 0 })) };
      }),
    );
    return {
      count: all.reduce((sum, { count }) => sum + count, 0),
      matches: all.flatMap(({ matches }) => matches).sort((a, b) => a.time - b.time || a.number - b.number || a.offset - b.offset),
      complete: all.every(({ complete }) => complete),
    };
  }

  // --- what is seen ---

  #build(element) {
    element.classList.add("log");
    this.#note = Object.assign(document.createElement("p"), { className: "log-note" });
    this.#note.setAttribute("role", "status");
    const at = (index) => this.#lines.row(index).key.split("-").map(Number);
    this.#pane = new Pane(this.#lines, this.#options.label, {
      follow: () => this.follow(),
      fill: () => this.#fill(),
      pick: (index) => {
        this.#mark(this.#lines.row(index).key);
        this.#options.picked(...at(index));
      },
      needle: () => this.#bar.needle,
    });
    this.#bar = new Bar(element, {
      label: this.#options.label,
      download: null,
      search: (text, signal) => this.#search(text, signal),
      jump: ({ number, offset }) => this.jump(number, offset),
      before: ({ time }) => time < (this.#lines.timeAt(this.#pane.firstLine) ?? 0),
      same: (one, other) => keyOf(one.number, one.offset) === keyOf(other.number, other.offset),
      between: (from, to) => this.#between(from, to),
      copy: () => this.#pane.inView(),
      link: () => (this.#lines.length ? this.#options.link(...at(Math.max(0, this.#pane.firstLine))) : location.href),
      pane: this.#pane,
    });
    element.replaceChildren(this.#bar.element, this.#note, ...this.#pane.elements);
  }
}
