// The lines of a log on the screen: only those in view are in the document, however many there are.

import { pieces } from "./ansi.js";
import { clockText } from "./time.js";

const OVERSCAN = 10;
const LONGEST_SHOWN = 20_000; // characters of a line; the rest is in the download
const SETTLED = 200; // milliseconds without a drawing
const HIGHEST = 30_000_000; // pixels that browsers can scroll

/**
 * A scrolling box that draws `lines` (what Lines has: length, first, rows, longest, top, lineAt, wrap, texts, styles, and
 * `row(index)`: {key, time, who}; `who` is {label, colour} or null).
 *
 * `calls`: follow() when the newest lines are asked for, fill() when more may be needed, pick(index, more) when a line's
 * place was clicked (`more`: with Shift), needle() gives the text that is looked for.
 */
export class Pane {
  #lines;
  #calls;
  #space;
  #follow;
  #pool = [];
  #frame = 0;
  #settling = 0;
  #lastTop = 0;
  #wrapped = false;
  #rowHeight = 18;
  #charWidth = 8;
  #gutter = 0;
  #resized = new ResizeObserver(() => this.measure());

  constructor(lines, label, calls) {
    this.#lines = lines;
    this.#calls = calls;
    this.following = true;
    this.atEnd = true; // the newest lines are among those held
    this.unseen = 0;
    this.marked = () => false; // whether the line with a key is one that was jumped to or picked
    this.stamps = false;
    this.#build(label);
  }

  begin() {
    this.measure();
    this.#resized.observe(this.box);
  }

  close() {
    this.#resized.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settling);
  }

  get firstLine() {
    return this.#lines.lineAt(this.#firstRow());
  }

  /** Pixels of a row. */
  get rowHeight() {
    return this.#rowHeight;
  }

  /** Whether the view is near the first or the last of the lines. */
  near(end) {
    const margin = this.box.clientHeight * 2;
    const { scrollTop, clientHeight, scrollHeight } = this.box;
    return end === "first" ? scrollTop < margin : scrollTop + clientHeight > scrollHeight - margin;
  }

  /** Bring a line to the middle. */
  center(index) {
    this.following = false;
    const row = this.#lines.top(index);
    this.fit();
    this.scroll((row + 0.5) * this.#rowHeight - this.box.clientHeight / 2);
    this.draw();
  }

  /** Stay with what is seen after rows were added (or, below zero, taken away) above it. */
  shift(rows) {
    this.fit();
    this.scroll(this.box.scrollTop + rows * this.#rowHeight);
    this.draw();
  }

  scroll(top) {
    this.box.scrollTop = Math.max(0, top);
    this.#lastTop = this.box.scrollTop;
  }

  wrap(on) {
    const first = this.firstLine;
    this.#wrapped = on;
    this.box.classList.toggle("log-wrap", on);
    this.measure();
    this.fit();
    if (!this.following && first >= 0) this.scroll(this.#lines.top(first) * this.#rowHeight);
  }

  draw(all = false) {
    if (all) for (const node of this.#pool) node.line = null;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #build(label) {
    const make = (name, className) => Object.assign(document.createElement(name), { className });
    this.box = make("div", "log-box");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "log");
    this.box.setAttribute("aria-live", "off");
    this.box.setAttribute("aria-label", label);
    this.#space = make("div", "log-space");
    this.#follow = Object.assign(make("button", "log-follow"), { type: "button", hidden: true });
    this.box.append(this.#space);
    this.elements = [this.box, this.#follow];
    this.box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#follow.addEventListener("click", () => this.#calls.follow());
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "End") this.#calls.follow();
      if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
      event.preventDefault();
      this.#step(event.key === "ArrowUp" ? -1 : 1, event.shiftKey);
    });
    this.box.addEventListener("copy", (event) => this.#copied(event));
    this.#space.addEventListener("click", (event) => {
      const place = event.target.closest(".log-place-of");
      const node = place && this.#pool.find((each) => each.element === place.parentNode);
      if (node) this.#calls.pick(node.index, event.shiftKey);
    });
  }

  // Pick the line beside the picked ones, or one in the middle where none is in view; `more`: besides them.
  #step(by, more) {
    const lines = this.#lines;
    const first = Math.max(0, this.firstLine);
    const last = lines.lineAt(this.#firstRow() + Math.floor(this.box.clientHeight / this.#rowHeight) - 1);
    if (!lines.length) return;
    const picked = [];
    for (let index = first; index <= last; index++) if (this.marked(lines.row(index).key)) picked.push(index);
    const beside = picked.length ? (by < 0 ? picked[0] : picked.at(-1)) + by : (first + last) >> 1;
    const index = Math.max(0, Math.min(lines.length - 1, beside));
    this.#calls.pick(index, more);
    if (index <= first || index >= last) this.center(index);
  }

  measure() {
    const probe = Object.assign(document.createElement("div"), { className: "log-row" });
    const text = Object.assign(document.createElement("span"), { textContent: "0".repeat(100) });
    const label = this.#label(this.#lines.widest?.() ?? { time: 0, who: null });
    probe.append(label, text);
    this.#space.append(probe);
    const { height } = probe.getBoundingClientRect();
    const { width } = text.getBoundingClientRect();
    const gutter = Math.ceil(label.getBoundingClientRect().width);
    probe.remove();
    if (!height) return; // not shown now
    this.#gutter = gutter;
    this.box.style.setProperty("--gutter", `${gutter}px`);
    this.#rowHeight = Math.max(1, height);
    this.#charWidth = Math.max(1, width / 100);
    const room = Math.floor((this.box.clientWidth - this.#gutter) / this.#charWidth) - 2;
    this.#lines.wrap(this.#wrapped ? Math.max(20, room) : 0);
    this.draw(true);
  }

  #firstRow() {
    return Math.floor(this.box.scrollTop / this.#rowHeight);
  }

  // The user's own scrolling: up ends the following, back to the bottom begins it again.
  #scrolled() {
    const { box } = this;
    const up = box.scrollTop < this.#lastTop - 1;
    const bottom = box.scrollTop + box.clientHeight >= box.scrollHeight - this.#rowHeight;
    if (up && !bottom) this.following = false;
    else if (bottom && this.atEnd) {
      this.following = true;
      this.unseen = 0;
    }
    this.#lastTop = box.scrollTop;
    this.draw();
  }

  fit() {
    const height = `${Math.min(HIGHEST, this.#lines.rows * this.#rowHeight)}px`;
    if (this.#space.style.height !== height) this.#space.style.height = height;
    const columns = Math.min(LONGEST_SHOWN, this.#lines.longest) + 2;
    const width = this.#wrapped ? "100%" : `${Math.ceil(columns * this.#charWidth + this.#gutter)}px`;
    if (this.#space.style.minWidth !== width) this.#space.style.minWidth = width;
  }

  #paint() {
    const lines = this.#lines;
    this.fit();
    if (this.following) this.scroll(this.box.scrollHeight);
    const first = Math.max(0, lines.lineAt(this.#firstRow()) - OVERSCAN);
    const lastRow = this.#firstRow() + Math.ceil(this.box.clientHeight / this.#rowHeight);
    const last = Math.min(lines.length - 1, lines.lineAt(lastRow) + OVERSCAN);
    this.#grow(last - first + 1);
    const unused = new Set(this.#pool);
    for (let index = first; index <= last; index++) {
      const node = this.#pool[modulo(index + lines.first, this.#pool.length)];
      unused.delete(node);
      this.#place(node, index);
    }
    for (const node of unused) node.element.hidden = true;
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), SETTLED);
    this.#follow.hidden = this.following || !lines.length;
    this.#follow.textContent = this.unseen ? `Follow (${this.unseen.toLocaleString()} new)` : "Follow";
    this.#calls.fill();
  }

  /** The texts of the lines in view. */
  inView() {
    return this.#seen().map((node) => this.#lines.plain(node.index));
  }

  #seen() {
    const { top, bottom } = this.box.getBoundingClientRect();
    return this.#pool
      .filter(({ element }) => !element.hidden)
      .filter(({ element }) => element.getBoundingClientRect().bottom > top + 1 && element.getBoundingClientRect().top < bottom - 1)
      .sort((a, b) => a.index - b.index);
  }

  // Once the scrolling has ended the nodes stand as their lines do, for who selects text or hears it read.
  #settle() {
    const order = this.#pool.filter(({ element }) => !element.hidden).sort((a, b) => a.index - b.index);
    const selection = getSelection();
    if (!selection.isCollapsed && this.box.contains(selection.anchorNode)) return;
    const sorted = order.every(({ element }, place) => place === 0 || order[place - 1].element.compareDocumentPosition(element) & 4);
    if (!sorted) this.#space.append(...order.map(({ element }) => element));
  }

  // A selection over several lines is copied as those lines, whole and one below the other.
  #copied(event) {
    const selection = getSelection();
    const chosen = this.#pool.filter(({ element }) => !element.hidden && selection.containsNode(element, true));
    if (chosen.length < 2) return;
    chosen.sort((a, b) => a.index - b.index);
    event.clipboardData.setData("text/plain", chosen.map((node) => this.#lines.plain(node.index)).join("\n"));
    event.preventDefault();
  }

  #grow(count) {
    if (this.#pool.length >= count) return;
    while (this.#pool.length < count + 2 * OVERSCAN) {
      const element = Object.assign(document.createElement("div"), { className: "log-row" });
      this.#space.append(element);
      this.#pool.push({ element, line: null, index: 0 });
    }
    for (const node of this.#pool) node.line = null; // each line has another place in the pool now
  }

  #place(node, index) {
    const lines = this.#lines;
    const { key, time, who } = lines.row(index);
    const text = lines.text(index);
    const style = lines.style(index);
    const top = lines.top(index) * this.#rowHeight;
    const needle = this.#calls.needle();
    const marked = this.marked(key);
    const { line } = node;
    node.index = index;
    node.element.hidden = false;
    if (line?.top !== top) node.element.style.transform = `translateY(${top}px)`;
    if (line?.key !== key || line.text !== text || line.style !== style || line.needle !== needle || line.time !== time) {
      node.element.replaceChildren(this.#label({ time, who }), ...written(text, style, needle));
    }
    if (line?.marked !== marked) node.element.classList.toggle("log-marked", marked);
    node.line = { key, text, style, top, needle, marked, time };
  }

  // What stands before a line: whose it is and when it was read. A click on it is a link to the line. Its words are made
  // by the style sheet, so that who copies lines copies lines.
  #label({ time, who }) {
    const label = Object.assign(document.createElement("span"), { className: "log-place-of", title: "Link to this line" });
    if (who) {
      label.dataset.who = who.label;
      label.dataset.colour = who.colour;
    }
    if (this.stamps) label.dataset.time = time === null ? "--:--:--" : clockText(time);
    if (this.stamps && time !== null) label.title = `Read at ${new Date(time).toISOString()}. Link to this line`;
    return label;
  }
}

// Untrusted text goes in as text only.
function written(text, style, needle) {
  const shown = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)} …` : text;
  const parts = needle ? hits(pieces(shown, style), needle) : pieces(shown, style);
  if (parts.length === 1 && !parts[0].style && !parts[0].hit) return [parts[0].text];
  return parts.map((part) => {
    const node = document.createElement(part.hit ? "mark" : "span");
    if (part.style) node.className = part.style;
    node.textContent = part.text;
    return node;
  });
}

// The pieces, cut where the text that is looked for begins and ends.
function hits(parts, needle) {
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

function modulo(value, size) {
  return ((value % size) + size) % size;
}
