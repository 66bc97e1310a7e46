// Sparklines: numbers in, a small SVG out. No network, no clock. Colours and sizes are those of `.spark` in the sheet.
//
//   const node = spark();                                         once
//   setSpark(node, [0, 2.5, null, 4], { label: "4 requests/s" }); as often as there are new numbers; null is a gap

import { setAttribute, svg } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 24;
const EDGE = 1; // room for half a stroke

/** An empty sparkline; it takes its size from the sheet and keeps it. */
export function spark() {
  const frame = { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" };
  return svg("svg", frame, svg("path", { class: "area" }), svg("path", { class: "line" }));
}

/** Draw `values` (numbers from 0 up, null where nothing was measured). `top`: the least value of the upper edge. */
export function setSpark(node, values, { label = "", top = 1 } = {}) {
  const most = Math.max(top, ...values.map((value) => value ?? 0));
  const stretches = runs(values).map(([first, last]) => points(values, first, last, most));
  const [area, line] = node.children;
  setAttribute(line, "d", stretches.map((stretch) => `M${stretch.map(pair).join("L")}`).join(""));
  setAttribute(area, "d", stretches.map(under).join(""));
  setAttribute(node, "aria-label", label);
  node.classList.toggle("blank", stretches.length === 0);
}

/** The stretches `[first, last]` of a list that have numbers. */
export function runs(values) {
  const found = [];
  values.forEach((value, at) => {
    if (value === null || value === undefined) return;
    if (found.length > 0 && found.at(-1)[1] === at - 1) found.at(-1)[1] = at;
    else found.push([at, at]);
  });
  return found;
}

function points(values, first, last, most) {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const y = (value) => HEIGHT - EDGE - (value / most) * (HEIGHT - 2 * EDGE);
  const found = [];
  for (let at = first; at <= last; at += 1) found.push([at * step, y(values[at])]);
  if (first === last) found.push([Math.min(first * step + step / 2, WIDTH), y(values[first])]); // a lone number is seen
  return found;
}

const pair = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const under = (stretch) => `M${stretch[0][0].toFixed(1)} ${HEIGHT}L${stretch.map(pair).join("L")}V${HEIGHT}Z`;
