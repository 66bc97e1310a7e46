// One plot: lines over time as an SVG that stretches with the page, with its figures beside their names. It draws what
// it is given; colours and sizes are those of the sheet.

import { h, keyed, setAttribute, setText, svg } from "./dom.js";
import { newestOf, stacked, valueAt } from "./history.js";

const WIDTH = 1000;
const HEIGHT = 100;
const NICE = [1, 2, 3, 4, 5, 6, 8, 10];
const FRESH = 20_000; // without traffic there is a sample each 13 s

/**
 * `series`: `{name, label, hint, area, optional}` each, `name` as History.line has it, `hint` what `label` means;
 * `optional` ones are shown when they are not zero. `stack`: areas lie on each other. `format(value)` makes a text; `least` is the least upper edge, and one of
 * `whole` numbers has a middle.
 */
export class Plot {
  constructor({ id, title, series, stack = false, format, least = 1, whole = false }) {
    Object.assign(this, { id, title, series, stack, format, least, whole });
    this.paths = series.map((each) => svg("path", { class: each.area ? "area" : "line", "data-series": each.name }));
    this.values = series.map(() => h("b", { class: "figure" }));
    this.keys = series.map((each, at) => h("span", { class: "key", title: each.hint, data: { series: each.name } }, h("i"), each.label, " ", this.values[at]));
    this.ticks = svg("path", { class: "grid" });
    this.frame = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.frame.append(svg("path", { class: "grid", d: `M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}` }), this.ticks, ...this.paths);
    this.scale = [h("span", { class: "top-label" }), h("span", { class: "middle-label" })];
    this.cross = h("i", { class: "cross", hidden: true });
    this.marks = h("div", { class: "marks" });
    this.times = h("div", { class: "times", "aria-hidden": "true" });
    this.none = h("span", { class: "none", hidden: true }, "Not measured");
    this.area = h("div", { class: "plot-area" }, this.frame, ...this.scale, this.marks, this.cross, this.none);
    this.node = h("figure", { class: "plot", data: { plot: id } }, h("figcaption", {}, h("b", {}, title), ...this.keys), this.area, this.times);
  }

  /** Draw `history` between two times. `ticks`: `{at, label}` each; `marks`: decisions, for the plot that shows them. */
  draw(history, { from, to, ticks, marks = [] }) {
    this.history = history;
    this.now = to;
    this.lines = this.series.map((each) => history.line(each.name));
    const areas = this.series.map((each, at) => (each.area ? this.lines[at] : []));
    const drawn = this.stack ? stacked(areas).map((line, at) => (this.series[at].area ? line : this.lines[at])) : this.lines;
    const nice = niceTop(Math.max(this.least, ...drawn.flat().map((segment) => segment.value)));
    const top = this.whole && nice % 2 === 1 ? nice + 1 : nice;
    const x = (time) => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * WIDTH;
    const y = (value) => HEIGHT - (value / top) * HEIGHT;
    this.paths.forEach((path, at) => setAttribute(path, "d", (this.series[at].area ? area : line)(drawn[at], x, y)));
    this.series.forEach((each, at) => {
      this.keys[at].hidden = each.optional === true && !this.lines[at].some((segment) => segment.value > 0);
    });
    this.#label(top, ticks, (time) => `${x(time) / (WIDTH / 100)}%`);
    keyed(this.marks, marks, (mark) => mark.id, (mark) => h("i", { data: { way: mark.target > mark.from ? "up" : "down" } }));
    marks.forEach((mark, at) => (this.marks.children[at].style.left = `${x(mark.time) / (WIDTH / 100)}%`));
    this.none.hidden = this.lines.some((each) => each.length > 0);
    this.read(null, null);
  }

  #label(top, ticks, left) {
    setText(this.scale[0], this.format(top));
    setText(this.scale[1], this.format(top / 2));
    setAttribute(this.ticks, "d", ticks.map(({ at }) => `M${parseFloat(left(at)) * (WIDTH / 100)} 0V${HEIGHT}`).join(""));
    while (this.times.children.length > ticks.length) this.times.lastChild.remove();
    while (this.times.children.length < ticks.length) this.times.append(h("span"));
    ticks.forEach(({ at, label }, number) => {
      setText(this.times.children[number], label);
      this.times.children[number].style.left = left(at);
    });
  }

  /** Show the figures of a time, at a share of the width; of now, without. */
  read(time, share) {
    this.cross.hidden = time === null;
    if (time !== null) this.cross.style.left = `${share * 100}%`;
    this.figures(time).forEach((value, at) => setText(this.values[at], value === null ? "–" : this.format(value)));
  }

  /** The values at a time, or the newest; null where nothing was measured. */
  figures(time = null) {
    const within = Math.max(FRESH, this.history.step * 2000);
    return this.lines.map((each) => (time === null ? newestOf(each, this.now, within) : valueAt(each, time)));
  }

  /** The newest figures as words. */
  get words() {
    const figures = this.figures();
    const told = this.series.map((each, at) => `${each.label} ${figures[at] === null ? "not measured" : this.format(figures[at])}`);
    return `${this.title}: ${told.filter((_, at) => !this.keys[at].hidden).join(", ")}.`;
  }
}

const point = (number) => number.toFixed(1);

// Each value holds for all of its segment: what was counted in a second is no more at its end than at its beginning.
function line(segments, x, y) {
  let path = "";
  let end = null;
  for (const { from, to, value } of segments) {
    path += from === end ? `V${point(y(value))}` : `M${point(x(from))} ${point(y(value))}`;
    path += `H${point(x(to))}`;
    end = to;
  }
  return path;
}

function area(segments, x, y) {
  return segments
    .filter(({ value, base = 0 }) => value > base)
    .map(({ from, to, value, base = 0 }) => `M${point(x(from))} ${point(y(base))}V${point(y(value))}H${point(x(to))}V${point(y(base))}Z`)
    .join("");
}

/** The next number from `most` up that is easily read. */
export function niceTop(most) {
  const ten = 10 ** Math.floor(Math.log10(most));
  return NICE.find((each) => each * ten >= most * 0.999) * ten;
}
