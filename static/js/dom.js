// Small pieces for making and patching elements. Text goes in as text only, and links only to where a browser may go.

/** An element: `props` are properties or attributes, `data` its dataset; children are nodes or texts (null is left out). */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "href") link(node, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...real(children, tag));
  return node;
}

// As the server's pages have them: they turn the direction of what follows, or are not seen at all.
const UNSEEN = /([\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff])/;
const TEXT_ONLY = new Set(["option", "textarea", "title"]);

/** The text in pieces, of which each unseen character is one that shows its code and isolates what it does. */
function marked(text) {
  return text.split(UNSEEN).map((part) => {
    if (!UNSEEN.test(part)) return part;
    const mark = document.createElement("bdi");
    mark.className = "unseen";
    mark.dataset.code = `U+${part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    mark.append(part);
    return mark;
  });
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; children are nodes. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const real = (children, tag) =>
  children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .flatMap((child) => (typeof child === "string" && UNSEEN.test(child) && !TEXT_ONLY.has(tag) ? marked(child) : child));

/** Let `node` have these children and no others. */
export function fill(node, ...children) {
  node.replaceChildren(...real(children, node.localName));
}

/** Point `node` to `address` if that is a page of ours or http(s); nothing else becomes a link. */
export function link(node, address) {
  if (/^(https?:\/\/|\/(?!\/)|#|\?)/i.test(address)) node.setAttribute("href", address);
  else node.removeAttribute("href");
}

/** Set the text unless it is there already, so that selections and the layout stay. */
export function setText(node, text) {
  if (node.textContent !== text) fill(node, text === "" ? null : text);
}

/** Set or remove an attribute unless it is so already. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Show or hide. */
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

const kept = new WeakMap();

/**
 * Make the children of `parent` the items, in their order: `key(item)` tells who is who, `create(item)` makes a node,
 * `update(node, item, before)` brings it up to date. An item that is the same object as before costs nothing; nodes are
 * moved only when the order changed, so focus and selection stay.
 */
export function keyed(parent, items, key, create, update = () => {}) {
  const before = kept.get(parent) ?? new Map();
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const now = new Map();
  for (const item of items) {
    const id = key(item);
    const entry = before.get(id) ?? { node: create(item), item: undefined };
    if (entry.item !== item) update(entry.node, item, entry.item);
    entry.item = item;
    now.set(id, entry);
  }
  for (const [id, entry] of before) if (!now.has(id)) entry.node.remove();
  let at = parent.firstChild;
  for (const { node } of now.values()) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  kept.set(parent, now);
  // A node that moves loses the focus.
  if (focused && document.activeElement !== focused && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** A text from outside, kept apart from the direction of the text around it. */
export function bdi(text, props = {}) {
  return h("bdi", props, text);
}

/** The JSON that the page was sent with. */
export function pageData() {
  return JSON.parse(document.getElementById("page-data").textContent);
}
