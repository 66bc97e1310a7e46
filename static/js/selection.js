// Rows that are ticked, by key: they stay so while rows come and go, and may reach beyond the page.

import { h } from "./dom.js";

export class Selection {
  #body;
  #all;
  #changed;
  #keys = new Set();
  #shown = [];

  /** `body` holds the rows, `all` is the box that ticks every one of them; `changed()` is told of each change. */
  constructor({ body, all, changed }) {
    this.#body = body;
    this.#all = all;
    this.#changed = changed;
    body.addEventListener("change", (change) => {
      if (!change.target.matches("[data-tick]")) return;
      this.#set(change.target.dataset.tick, change.target.checked);
      this.#tell();
    });
    all.addEventListener("change", () => {
      for (const key of this.#shown) this.#set(key, all.checked);
      this.#tell();
    });
  }

  /** A cell with the box of a row; empty where the row cannot be ticked. */
  cell(key, label, able = true) {
    if (!able) return h("td", { class: "tick" });
    const box = h("input", { type: "checkbox", "aria-label": `Select ${label}`, data: { tick: key } });
    box.checked = this.#keys.has(String(key));
    return h("td", { class: "tick" }, box);
  }

  /** These rows are shown now; what is neither shown nor chosen beyond the page is no longer ticked. */
  keep(shown) {
    const before = this.#shown;
    this.#shown = shown.map(String);
    const still = new Set(this.#shown);
    for (const key of before) if (!still.has(key)) this.#keys.delete(key);
    this.#drawAll();
  }

  /** The keys that are ticked. */
  chosen() {
    return [...this.#keys];
  }

  /** Whether every row that is shown is ticked. */
  get full() {
    return this.#shown.length > 0 && this.#shown.every((key) => this.#keys.has(key));
  }

  /** Tick these and no others. */
  choose(keys) {
    this.#keys = new Set(keys.map(String));
    this.#tell();
  }

  #set(key, ticked) {
    if (ticked) this.#keys.add(key);
    else this.#keys.delete(key);
  }

  #tell() {
    for (const box of this.#body.querySelectorAll("[data-tick]")) box.checked = this.#keys.has(box.dataset.tick);
    this.#drawAll();
    this.#changed();
  }

  #drawAll() {
    this.#all.checked = this.full;
    this.#all.indeterminate = !this.full && this.#shown.some((key) => this.#keys.has(key));
  }
}
