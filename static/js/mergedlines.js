// The lines of several logs in the order in which they were read, as far as that was noted. No DOM.

const byTime = (one, other) => one.time - other.time || one.source.place - other.source.place || one.line - other.line;

/**
 * `sources` is a Map of {place, who, number, lines, moments, more, newer}: `more` tells that there are older lines than those held,
 * `newer` that there are newer ones. Only what lies between the oldest and the newest moment of which all is held is shown.
 * A line without a time counts as read when the one before it was.
 */
export class MergedLines {
  #order = []; // {source, line, time}: `line` keeps its number in its source
  #tops = [0];
  #counted = 0; // so many entries of #tops are right
  #columns = 0;
  #bounds = [-Infinity, Infinity];

  constructor(sources) {
    this.sources = sources;
    this.first = 0;
  }

  get length() {
    return this.#order.length;
  }

  get rows() {
    return this.top(this.length);
  }

  get longest() {
    return Math.max(0, ...[...this.sources.values()].map(({ lines }) => lines.longest));
  }

  top(index) {
    if (!this.#columns) return index;
    for (; this.#counted < index; this.#counted++) {
      const { source, line } = this.#order[this.#counted];
      const at = line - source.lines.first;
      this.#tops[this.#counted + 1] = this.#tops[this.#counted] + source.lines.top(at + 1) - source.lines.top(at);
    }
    return this.#tops[index];
  }

  lineAt(row) {
    if (!this.#columns) return Math.min(Math.max(row, 0), this.length - 1);
    this.top(this.length);
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#tops[middle + 1] > row) high = middle;
      else low = middle + 1;
    }
    return Math.min(low, this.length - 1);
  }

  wrap(columns) {
    this.#columns = columns;
    for (const { lines } of this.sources.values()) lines.wrap(columns);
    this.#recount(0);
  }

  text(index) {
    return this.#held(index, "texts");
  }

  style(index) {
    return this.#held(index, "styles");
  }

  plain(index) {
    const { source, line } = this.#order[index];
    return `${source.who.label} ${source.lines.plain(line - source.lines.first)}`;
  }

  row(index) {
    const { source } = this.#order[index];
    const offset = this.#held(index, "offsets");
    return { key: keyOf(source.number, offset), time: this.#held(index, "times"), who: source.who };
  }

  /** What takes the most room before a line. */
  widest() {
    const labels = [...this.sources.values()].map(({ who }) => who);
    const who = labels.reduce((one, other) => (other.label.length > (one?.label.length ?? 0) ? other : one), null);
    return { time: 0, who };
  }

  /** By which moment a line is in its place; null without one. */
  timeAt(index) {
    return this.#order[index]?.time ?? null;
  }

  /** Where the line of a source at an offset is; -1 where it is not shown. */
  indexOf(number, offset) {
    const source = this.sources.get(number);
    if (!source?.lines.holds(offset)) return -1;
    const line = source.lines.first + source.lines.indexOf(offset);
    return this.#order.findIndex((each) => each.source === source && each.line === line);
  }

  /** Take in what was added behind the lines of a source, `before` of which were known. How many lines came. */
  added(source, before) {
    const count = source.lines.length - before;
    this.#note(source, before);
    if (this.#changed()) {
      this.rebuild();
      return count;
    }
    let least = this.length;
    for (let at = before; at < source.lines.length; at++) {
      const entry = { source, line: source.lines.first + at, time: source.moments[at] };
      if (entry.time < this.#bounds[0] || entry.time > this.#bounds[1]) continue;
      let place = this.length;
      while (place > 0 && byTime(this.#order[place - 1], entry) > 0) place -= 1;
      this.#order.splice(place, 0, entry);
      least = Math.min(least, place);
    }
    // The line that had no end yet may take more rows now.
    const open = before ? this.#order.findLastIndex((each) => each.source === source && each.line === source.lines.first + before - 1) : -1;
    this.#recount(open < 0 ? least : Math.min(least, open));
    return count;
  }

  /** Put all in order anew. How many rows that added above the line that was the first. */
  rebuild() {
    const old = this.#order[0];
    for (const source of this.sources.values()) this.#note(source, 0);
    this.#bounds = this.#between();
    const [least, most] = this.#bounds;
    this.#order = [];
    for (const source of this.sources.values()) {
      source.moments.forEach((time, at) => {
        if (time >= least && time <= most) this.#order.push({ source, line: source.lines.first + at, time });
      });
    }
    this.#order.sort(byTime);
    this.#recount(0);
    const place = old ? this.#order.findIndex((each) => each.source === old.source && each.line === old.line) : -1;
    this.first -= Math.max(0, place);
    return place > 0 ? this.top(place) : 0;
  }

  /** Let go of the oldest lines. How many rows that were. */
  dropFirst(count) {
    const rows = this.top(count);
    const gone = new Map();
    for (const { source } of this.#order.splice(0, count)) gone.set(source, (gone.get(source) ?? 0) + 1);
    for (const [source, lines] of gone) {
      source.lines.dropFirst(this.#hidden(source) + lines);
      source.more = true;
    }
    this.first += count;
    this.rebuild();
    return rows;
  }

  // Lines of a source that are older than what is shown.
  #hidden(source) {
    return source.moments.findIndex((time) => time >= this.#bounds[0]);
  }

  #held(index, what) {
    const { source, line } = this.#order[index];
    return source.lines[what][line - source.lines.first];
  }

  // The moment of each line from `from` on, which never goes back within a source.
  #note(source, from) {
    source.moments.length = from;
    for (let at = from; at < source.lines.length; at++) {
      const last = source.moments.at(-1) ?? 0;
      source.moments.push(Math.max(last, source.lines.times[at] ?? last));
    }
  }

  #between() {
    let [least, most] = [-Infinity, Infinity];
    for (const { more, newer, moments } of this.sources.values()) {
      if (!moments.length) continue;
      if (more) least = Math.max(least, moments[0]);
      if (newer) most = Math.min(most, moments.at(-1));
    }
    return [least, most];
  }

  #changed() {
    const [least, most] = this.#between();
    return least !== this.#bounds[0] || most !== this.#bounds[1];
  }

  #recount(from) {
    this.#counted = Math.min(this.#counted, from);
    if (from === 0) this.#tops = [0];
  }
}

/** The name of a line: whose it is, and its offset. */
export const keyOf = (number, offset) => `${number}-${offset}`;
