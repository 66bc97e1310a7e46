// The lines of a part of a log: raw text, byte offset and the style each begins with. No DOM.

import { plain, styleAfter } from "./ansi.js";

const REDRAWN_CHARS = 8192; // a line that is redrawn for hours keeps only its last pictures

/** The part of a log from byte `start` to byte `end`. `first` numbers the lines, so that a line keeps its number. */
export class Lines {
  #columns = 0; // 0: every line is one row

  constructor(start = 0) {
    this.clear(start);
  }

  get length() {
    return this.texts.length;
  }

  clear(start) {
    this.start = this.end = start;
    this.first = 0;
    this.texts = [];
    this.offsets = [];
    this.styles = [];
    this.times = []; // when each line was read, in ms; null where nobody noted it
    this.tops = [0]; // tops[i]: rows above line i, and one more entry for all rows
    this.open = false; // the last line has no end yet
    this.longest = 0;
  }

  get rows() {
    return this.tops.at(-1);
  }

  top(index) {
    return this.tops[index];
  }

  text(index) {
    return this.texts[index];
  }

  style(index) {
    return this.styles[index];
  }

  /** The text of a line without colours and redrawings. */
  plain(index) {
    return plain(this.texts[index]);
  }

  /** Who a line is, when it was read, and whose it is where there are several. */
  row(index) {
    return { key: this.offsets[index], time: this.times[index], who: null };
  }

  /** The line that covers `row`. */
  lineAt(row) {
    if (!this.#columns) return Math.min(Math.max(row, 0), this.length - 1);
    return Math.max(0, Math.min(firstAbove(this.tops, row) - 1, this.length - 1));
  }

  /** The line that holds the byte at `offset`. */
  indexOf(offset) {
    return Math.max(0, firstAbove(this.offsets, offset) - 1);
  }

  holds(offset) {
    return this.length > 0 && offset >= this.start && offset < this.end;
  }

  /** Wrap at `columns` (0: not at all). */
  wrap(columns) {
    if (columns === this.#columns) return;
    this.#columns = columns;
    this.#count();
  }

  /** Add `{start, end, text, breaks}`, which must begin at `end`. */
  append(chunk) {
    const { texts, offsets } = split(chunk);
    const times = timesOf(offsets, chunk.times);
    let place = 0;
    if (this.open && this.length) {
      this.#extend(texts[0]);
      place = 1;
    }
    for (; place < texts.length; place++) {
      if (place === texts.length - 1 && texts[place] === "") break;
      this.#push(texts[place], offsets[place], times[place]);
    }
    this.open = texts.at(-1) !== "";
    this.end = chunk.end;
  }

  /** Put a page of whole lines, which must end at `start`, before all others. How many lines that were. */
  prepend(page) {
    const { texts, offsets } = split(page);
    if (texts.at(-1) === "") texts.pop();
    let style = "";
    const styles = texts.map((text) => {
      const begun = style;
      style = styleAfter(text, style);
      return begun;
    });
    this.texts = texts.concat(this.texts);
    this.offsets = offsets.slice(0, texts.length).concat(this.offsets);
    this.styles = styles.concat(this.styles);
    this.times = timesOf(offsets.slice(0, texts.length), page.times).concat(this.times);
    this.first -= texts.length;
    this.start = page.start;
    for (const text of texts) this.longest = Math.max(this.longest, text.length);
    this.#count();
    return texts.length;
  }

  /** Let go of the oldest lines. How many rows that were. */
  dropFirst(count) {
    const rows = this.tops[count];
    for (const list of [this.texts, this.offsets, this.styles, this.times]) list.splice(0, count);
    this.first += count;
    this.start = this.offsets[0] ?? this.end;
    this.#count();
    return rows;
  }

  /** Let go of the newest lines. */
  dropLast(count) {
    const kept = this.length - count;
    this.end = this.offsets[kept];
    for (const list of [this.texts, this.offsets, this.styles, this.times]) list.length = kept;
    this.tops.length = kept + 1;
    this.open = false;
  }

  #push(text, offset, time) {
    const last = this.length - 1;
    this.styles.push(last < 0 ? "" : styleAfter(this.texts[last], this.styles[last]));
    this.texts.push(text);
    this.offsets.push(offset);
    this.times.push(time);
    this.tops.push(this.rows + this.#rowsOf(text));
    this.longest = Math.max(this.longest, text.length);
  }

  #extend(text) {
    const last = this.length - 1;
    let whole = this.texts[last] + text;
    if (whole.length > REDRAWN_CHARS && whole.includes("\r")) {
      whole = whole.slice(whole.lastIndexOf("\r", whole.lastIndexOf("\r", whole.length - 2) - 1) + 1);
    }
    this.texts[last] = whole;
    this.tops[last + 1] = this.tops[last] + this.#rowsOf(whole);
    this.longest = Math.max(this.longest, whole.length);
  }

  #rowsOf(text) {
    return this.#columns ? Math.max(1, Math.ceil(width(plain(text)) / this.#columns)) : 1;
  }

  #count() {
    this.tops = [0];
    for (let index = 0, top = 0; index < this.length; index++) this.tops.push((top += this.#rowsOf(this.texts[index])));
  }
}

// The texts of the lines and their byte offsets; the last text is what follows the last line end.
function split({ start, end, text, breaks }) {
  const texts = text.split("\n");
  const ascii = !breaks && end - start === text.length;
  const offsets = [];
  for (let place = 0, offset = start; place < texts.length; place++) {
    offsets.push(offset);
    offset += breaks ? breaks[place] : (ascii ? texts[place].length : bytes(texts[place])) + 1;
  }
  return { texts, offsets };
}

// When each line was read: by the last of `[offset, ms]` that is not behind it.
function timesOf(offsets, known = []) {
  let next = 0;
  let time = null;
  return offsets.map((offset) => {
    while (next < known.length && known[next][0] <= offset) time = known[next++][1];
    return time;
  });
}

// Bytes of the text in UTF-8.
function bytes(text) {
  let count = text.length;
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (code > 0x7f) count += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return count;
}

// Columns that the text takes: wide characters take two, and so may a tab (four here).
function width(text) {
  let columns = text.length;
  if (/[^\x20-\x7e]/.test(text)) {
    for (const char of text) {
      if (char === "\t") columns += 3;
      else if (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/.test(char)) columns++;
    }
  }
  return columns;
}

// The first place of a sorted list whose value is above `value`.
function firstAbove(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
