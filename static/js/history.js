// What the plots of a service know, without any DOM: answers of samples.json?step=, kept for a range and brought up to
// date by later ones. A line is a list of segments {from, to, value}, in milliseconds; between them is a gap.

const RATES = { asked: (item) => item.requests / item.seconds };
for (const [at, name] of ["1xx", "2xx", "3xx", "4xx", "5xx"].entries()) RATES[name] = (item) => item.codes[at] / item.seconds;
const LEVELS = { ready: 1, wanted: 2 };
const SLACK = 1500; // a sample that is late by so much leaves no gap

/** The traffic, replicas and decisions of the last `range` seconds, in steps of `step` seconds. */
export class History {
  constructor(range, step) {
    this.range = range;
    this.step = step;
    this.reset();
  }

  reset() {
    this.service = null;
    this.cursor = null;
    this.now = 0;
    this.items = [];
    this.levels = [];
    this.decisions = [];
  }

  /** What to ask for: all of the range, or what has come since the last answer. */
  get query() {
    const query = new URLSearchParams({ range: String(this.range), step: String(this.step) });
    if (this.cursor !== null) query.set("cursor", String(this.cursor));
    if (this.items.length > 0) query.set("after", new Date(this.#openStep()).toISOString());
    return query;
  }

  // When the newest step began, which may have more samples by now.
  #openStep() {
    const length = this.step * 1000;
    return (Math.ceil(this.items.at(-1).at / length) - 1) * length;
  }

  /** Take over an answer to `query`. */
  take(answer) {
    if (this.service !== answer.service) this.reset();
    this.service = answer.service;
    this.now = Date.parse(answer.now);
    const fresh = items(answer.columns);
    if (this.items.length > 0) {
      const open = this.#openStep();
      this.items = this.items.filter((item) => item.at <= open);
    }
    this.items.push(...fresh);
    this.levels.push(...answer.levels.map(([at, ready, wanted]) => [Date.parse(at), ready, wanted]));
    this.decisions.push(...answer.decisions.map((decision) => ({ ...decision, time: Date.parse(decision.at) })));
    this.cursor = answer.cursor;
    this.#trim();
  }

  #trim() {
    const begin = this.now - this.range * 1000;
    this.items = this.items.filter((item) => item.at > begin);
    this.decisions = this.decisions.filter((decision) => decision.time > begin);
    const first = this.levels.findLastIndex(([at]) => at <= begin);
    if (first > 0) this.levels.splice(0, first);
  }

  /** The segments of a line: a rate ("asked", "2xx" ...), "ready", "wanted", or a column. */
  line(name) {
    if (name in LEVELS) return this.#steps(LEVELS[name]);
    const value = RATES[name] ?? ((item) => item[name]);
    const slack = Math.max(SLACK, this.step * 600);
    const found = [];
    for (const item of this.items) {
      const own = value(item);
      if (own === null || !Number.isFinite(own)) continue;
      const before = found.at(-1);
      const from = before && item.from - before.to < slack ? before.to : item.from;
      found.push({ from, to: item.at, value: own });
    }
    return found;
  }

  #steps(column) {
    return this.levels.map((level, at) => ({ from: level[0], to: this.levels[at + 1]?.[0] ?? this.now, value: level[column] }));
  }

  /** The decision nearest to a time, none farther than `within` milliseconds. */
  decisionAt(time, within) {
    const near = this.decisions.filter((decision) => Math.abs(decision.time - time) <= within);
    return near.sort((a, b) => Math.abs(a.time - time) - Math.abs(b.time - time))[0] ?? null;
  }
}

function items(columns) {
  const names = Object.keys(columns);
  return columns.at.map((text, row) => {
    const item = Object.fromEntries(names.map((name) => [name, columns[name][row]]));
    const at = Date.parse(text);
    return { ...item, at, from: at - item.seconds * 1000 };
  });
}

/** The value of a line at a time; null in a gap. */
export function valueAt(line, time) {
  const found = line.findLast((segment) => segment.from <= time);
  return found && time <= found.to ? found.value : null;
}

/** The newest value of a line, unless it is older than `within` milliseconds before `now`. */
export function newestOf(line, now, within) {
  const last = line.at(-1);
  return last && now - last.to <= within ? last.value : null;
}

/** Lines laid on each other: where one has no value, it adds nothing. */
export function stacked(lines) {
  const sums = new Map();
  return lines.map((line) =>
    line.map((segment) => {
      const base = sums.get(segment.to) ?? 0;
      sums.set(segment.to, base + segment.value);
      return { ...segment, base, value: base + segment.value };
    }),
  );
}
