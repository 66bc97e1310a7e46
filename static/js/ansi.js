// Terminal text to styled pieces: colours, carriage returns and backspaces; all other escapes are left out.
//
// A style is a string of class names ("" for plain), so it can be kept per line and compared.

const ESCAPES =
  // CSI, OSC (links, titles), other string escapes, other escapes
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?/g;
const SPECIAL = /[\x00-\x08\x0b-\x1f\x7f]/;
const ERASES = /\x1b\[\d*K/;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const PALETTE = [
  [0, 0, 0], [205, 49, 49], [13, 188, 121], [229, 229, 16], [36, 114, 200], [188, 63, 188], [17, 168, 205],
  [229, 229, 229], [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 245, 67], [59, 142, 234], [214, 112, 214],
  [41, 184, 219], [255, 255, 255],
];
const MOST_KNOWN = 4096;
const recoloured = new Map();
const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const UNSET = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

/** The text alone, as a terminal would leave it. */
export function plain(raw) {
  if (!SPECIAL.test(raw)) return raw;
  const bare = raw.replace(ESCAPES, "");
  if (!SPECIAL.test(bare) && !ERASES.test(raw)) return bare;
  return pieces(raw, "").map((piece) => piece.text).join("");
}

/** The style that holds after the line. */
export function styleAfter(raw, style) {
  const last = raw.lastIndexOf("\x1b");
  if (last < 0) return style;
  if (raw.startsWith("[0m", last + 1) || raw.startsWith("[m", last + 1)) return "";
  for (const [escape] of raw.matchAll(ESCAPES)) if (isColour(escape)) style = recolour(style, escape);
  return style;
}

/** `[{ text, style }]`: the line as a terminal shows it, begun in `style`. */
export function pieces(raw, style) {
  if (!SPECIAL.test(raw)) return [{ text: raw, style }];
  const cells = /[\b]|\r(?!\r*$)/.test(raw) ? new Overwritten() : new Appended();
  let place = 0;
  for (const { 0: escape, index } of raw.matchAll(ESCAPES)) {
    if (index > place) cells.write(raw.slice(place, index), style);
    place = index + escape.length;
    if (escape.endsWith("m")) style = isColour(escape) ? recolour(style, escape) : style;
    else if (/^\x1b\[\d*K$/.test(escape)) cells.erase(escape);
  }
  cells.write(raw.slice(place), style);
  return cells.pieces();
}

// The usual line: nothing in it goes back.
class Appended {
  #pieces = [];

  write(text, style) {
    if (!text) return;
    if (SPECIAL.test(text)) text = shown(text.replaceAll("\r", ""));
    const last = this.#pieces.at(-1);
    if (last && last.style === style) last.text += text;
    else this.#pieces.push({ text, style });
  }

  erase() {}

  pieces() {
    return this.#pieces;
  }
}

// A line that is written over, as progress bars are.
class Overwritten {
  #cells = [];
  #column = 0;

  write(text, style) {
    for (const char of text) {
      if (char === "\r") this.#column = 0;
      else if (char === "\b") this.#column = Math.max(0, this.#column - 1);
      else this.#cells[this.#column++] = [SPECIAL.test(char) ? shown(char) : char, style];
    }
  }

  erase(escape) {
    const kind = escape.slice(2, -1) || "0";
    if (kind === "0") this.#cells.length = Math.min(this.#cells.length, this.#column);
    else if (kind === "2") this.#cells.length = 0;
  }

  pieces() {
    const found = new Appended();
    for (let place = 0; place < this.#cells.length; place++) found.write(...(this.#cells[place] ?? [" ", ""]));
    return found.pieces();
  }
}

// Control characters become their pictures: they are seen, and do nothing.
function shown(text) {
  return text.replace(/[\x00-\x08\x0b-\x1f]/g, picture).replaceAll("\x7f", "\u2421");
}

function picture(char) {
  return String.fromCharCode(0x2400 + char.charCodeAt(0));
}

function isColour(escape) {
  return /^\x1b\[[\d;:]*m$/.test(escape);
}

// Logs repeat a few combinations without end.
function recolour(style, escape) {
  const key = `${style}|${escape}`;
  let known = recoloured.get(key);
  if (known === undefined) {
    if (recoloured.size > MOST_KNOWN) recoloured.clear();
    recoloured.set(key, (known = computed(style, escape)));
  }
  return known;
}

function computed(style, escape) {
  const set = new Set(style ? style.split(" ") : []);
  const codes = escape.slice(2, -1).split(/[;:]/).map(Number);
  for (let place = 0; place < codes.length; place++) {
    const code = codes[place];
    if (code === 0) set.clear();
    else if (FLAGS[code]) set.add(`ansi-${FLAGS[code]}`);
    else if (UNSET[code]) for (const name of UNSET[code]) set.delete(`ansi-${name}`);
    else if (code === 38 || code === 48) place = extended(set, codes, place);
    else simple(set, code);
  }
  return [...set].sort().join(" ");
}

function simple(set, code) {
  const ground = code >= 100 || (code >= 40 && code <= 49) ? "bg" : "fg";
  const bright = code >= 90;
  const digit = code % 10;
  if (!(code >= 30 && code <= 49) && !(code >= 90 && code <= 107)) return;
  if (digit === 9 && !bright) replace(set, ground, null);
  else if (digit < 8) replace(set, ground, colourName(digit + (bright ? 8 : 0)));
}

// 38;5;n and 38;2;r;g;b: the nearest of the sixteen, which suit light and dark.
function extended(set, codes, place) {
  const ground = codes[place] === 38 ? "fg" : "bg";
  if (codes[place + 1] === 5) {
    replace(set, ground, colourName(nearestOf256(codes[place + 2] ?? 0)));
    return place + 2;
  }
  if (codes[place + 1] === 2) {
    replace(set, ground, colourName(nearest(codes.slice(place + 2, place + 5))));
    return place + 4;
  }
  return place + 1;
}

function replace(set, ground, name) {
  for (const each of set) if (each.startsWith(`ansi-${ground}-`)) set.delete(each);
  if (name) set.add(`ansi-${ground}-${name}`);
}

function colourName(number) {
  return number < 8 ? NAMES[number] : `bright-${NAMES[number - 8]}`;
}

function nearestOf256(number) {
  if (number < 16) return number;
  if (number >= 232) return nearest(Array(3).fill((number - 232) * 10 + 8));
  const cube = number - 16;
  return nearest([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((part) => (part ? part * 40 + 55 : 0)));
}

function nearest([red = 0, green = 0, blue = 0]) {
  let best = 0;
  let least = Infinity;
  for (const [number, [r, g, b]] of PALETTE.entries()) {
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < least) [best, least] = [number, distance];
  }
  return best;
}
