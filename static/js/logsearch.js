// The search of a log: the server looks and counts, the arrows go from match to match.

import { h } from "./dom.js";

const TYPING = 300; // milliseconds without a key before it looks
const OLD = 5000; // results of a growing log are fetched again after this

/**
 * `calls`: label, search(text, signal) gives {count, matches, complete}, jump(match), before(match) tells whether it stands
 * before what is looked at, same(one, other), and pane, which draws.
 */
export class LogSearch {
  #calls;
  #input;
  #count;
  #found = null;
  #fetched = 0;
  #at = -1;
  #timer = 0;
  #request = null;

  constructor(calls) {
    this.#calls = calls;
    this.needle = "";
    this.#build();
  }

  close() {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  #build() {
    const label = `Search the ${this.#calls.label}`;
    const fixed = { type: "search", placeholder: "Search", maxlength: "500", "aria-label": label, data: { search: "" } };
    this.#input = h("input", { class: "log-search", ...fixed });
    this.#count = h("span", { class: "log-count", role: "status" });
    const previous = button("↑", "Previous match", () => this.#step(-1));
    const next = button("↓", "Next match", () => this.#step(1));
    for (const each of [previous, next]) each.setAttribute("aria-label", each.title);
    this.elements = [this.#input, previous, next, this.#count];
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), TYPING);
    });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#step(event.shiftKey ? -1 : 1);
    });
  }

  async #search() {
    this.close();
    const text = this.#input.value;
    this.needle = text.toLowerCase();
    this.#calls.pane.draw();
    this.#found = null;
    this.#at = -1;
    this.#count.textContent = text ? "…" : "";
    if (!text) return;
    const request = (this.#request = new AbortController());
    try {
      const found = await this.#calls.search(text, request.signal);
      this.#found = found;
      this.#fetched = Date.now();
      if (found.matches.length) this.#show(this.#nearest());
      else this.#tell();
    } catch (error) {
      if (!request.signal.aborted) this.#count.textContent = error.message;
    }
  }

  // The first match from where the reader is, or the newest.
  #nearest() {
    const place = this.#found.matches.findIndex((match) => !this.#calls.before(match));
    return place < 0 ? this.#found.matches.length - 1 : place;
  }

  async #step(by) {
    if (!this.#found || Date.now() - this.#fetched > OLD) {
      const last = this.#found?.matches[this.#at];
      await this.#search();
      const place = last ? (this.#found?.matches.findIndex((match) => this.#calls.same(match, last)) ?? -1) : -1;
      if (place < 0) return;
      this.#at = place;
    }
    const size = this.#found.matches.length;
    if (size) this.#show((this.#at + by + size) % size);
  }

  #show(place) {
    this.#at = place;
    this.#tell();
    this.#calls.jump(this.#found.matches[place]);
  }

  #tell() {
    const { count, matches, complete } = this.#found;
    const older = count - matches.length; // only the newest are listed
    const all = `${count.toLocaleString()}${complete ? "" : "+"}`;
    this.#count.textContent = matches.length ? `${(older + this.#at + 1).toLocaleString()} of ${all}` : "no match";
    this.#count.title = complete ? "" : "The log is long: the newest part of it was not searched in time.";
  }
}

/** A button of the bar; `title` says what it does. */
export function button(text, title, press) {
  return h("button", { class: "log-button", type: "button", title, data: { text }, onclick: press }, text);
}
