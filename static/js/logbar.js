// The bar above a log: its state, the search, a range of time, and what can be done with the lines.

import { h } from "./dom.js";
import { button, LogSearch } from "./logsearch.js";

const WORDS = {
  connecting: "connecting",
  live: "live",
  waiting: "no log yet",
  ended: "ended",
  gone: "forgotten",
  paused: "older lines",
  lost: "connection lost",
  "signed-out": "signed out",
};
const KEPT = "rollcall-log"; // wrap and time stamps, as they were chosen last
const NARROW = matchMedia("(max-width: 760px)"); // where few lines fit: they are wrapped unless somebody chose

/**
 * `calls`: what LogSearch takes; between(from, to) in ms or null; copy() gives lines; link() gives an address, or is null;
 * `pane` draws the lines; `download` is the address of the whole log, or null.
 */
export class Bar {
  #calls;
  #place;
  #badge;
  #search;
  #times;
  #kept = kept();
  #left = () => this.#screen.setAttribute("aria-pressed", String(document.fullscreenElement === this.#place));
  #screen;

  /** `place` is the element that fills the screen when asked to. */
  constructor(place, calls) {
    this.#place = place;
    this.#calls = calls;
    this.#search = new LogSearch(calls);
    this.element = this.#build();
    document.addEventListener("fullscreenchange", this.#left);
  }

  /** The text that is looked for, in small letters. */
  get needle() {
    return this.#search.needle;
  }

  state(state) {
    this.#badge.textContent = WORDS[state] ?? state;
    this.#badge.dataset.state = state;
  }

  close() {
    document.removeEventListener("fullscreenchange", this.#left);
    this.#search.close();
  }

  #build() {
    this.#badge = h("span", { class: "log-badge", role: "status" });
    this.state("connecting");
    const bar = h("div", { class: "log-bar" });
    this.#times = this.#range();
    bar.append(this.#badge, ...this.#search.elements, ...this.#toggles(), ...this.#deeds());
    if (this.#calls.download) {
      bar.append(h("a", { class: "log-download", href: this.#calls.download, download: true }, "Download"));
    }
    bar.append(this.#times);
    return bar;
  }

  #toggles() {
    const { pane } = this.#calls;
    const wrap = toggle("Wrap", "Wrap long lines", this.#kept.wrap, (on) => {
      this.#keep({ wrap: on });
      pane.wrap(on);
    });
    const stamps = toggle("Times", "Show when each line was read", this.#kept.stamps, (on) => {
      this.#keep({ stamps: on });
      pane.stamps = on;
      pane.measure();
    });
    pane.stamps = this.#kept.stamps;
    if (this.#kept.wrap) queueMicrotask(() => pane.wrap(true));
    const range = toggle("Range", "Show a range of time", false, (on) => {
      this.#times.hidden = !on;
      if (on) this.#times.querySelector("input").focus();
      else this.#clear();
    });
    return [wrap, stamps, range];
  }

  #deeds() {
    const made = [];
    if (navigator.clipboard) {
      const copy = button("Copy", "Copy the picked lines, or those in view", () => give(copy, this.#calls.copy().join("\n")));
      made.push(copy);
      if (this.#calls.link) {
        const link = button("Link", "Copy a link to the picked lines, or to the first in view", () => give(link, this.#calls.link()));
        made.push(link);
      }
    }
    if (document.fullscreenEnabled) {
      this.#screen = button("Full screen", "Fill the screen with the log", () => this.#fullScreen());
      this.#screen.setAttribute("aria-pressed", "false");
      made.push(this.#screen);
    }
    return made;
  }

  #fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.#place.requestFullscreen();
  }

  // Two moments in the reader's zone.
  #range() {
    const [from, to] = [0, 1].map(() => h("input", { type: "datetime-local", step: "1" }));
    const form = h(
      "form",
      { class: "log-range", hidden: true },
      h("label", {}, "From ", from),
      h("label", {}, "to ", to),
      h("button", { class: "log-button", type: "submit" }, "Show"),
      button("All", "Show all times again", () => this.#clear()),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [least, most] = [from, to].map((input) => (input.value ? new Date(input.value).getTime() : null));
      this.#calls.between(least, most === null ? null : most + 999); // the whole of the last second
    });
    return form;
  }

  #clear() {
    this.#times.reset();
    this.#calls.between(null, null);
  }

  #keep(change) {
    localStorage.setItem(KEPT, JSON.stringify({ ...stored(), ...change }));
  }
}

const kept = () => ({ wrap: NARROW.matches, stamps: false, ...stored() });

// What was chosen of them; what was not goes by the window.
function stored() {
  try {
    const { wrap, stamps } = JSON.parse(localStorage.getItem(KEPT)) ?? {};
    return Object.fromEntries(Object.entries({ wrap, stamps }).filter(([, value]) => typeof value === "boolean"));
  } catch {
    return {};
  }
}

async function give(pressed, text) {
  await navigator.clipboard.writeText(text);
  const before = pressed.dataset.text;
  pressed.textContent = "Copied";
  setTimeout(() => (pressed.textContent = before), 1500);
}

function toggle(text, title, on, press) {
  const made = button(text, title, () => {
    const now = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(now));
    press(now);
  });
  made.setAttribute("aria-pressed", String(on));
  return made;
}
