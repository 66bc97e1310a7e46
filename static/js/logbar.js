// The bar above a log: its state, the search, wrapping, the download.

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
const TYPING = 300; // milliseconds without a key before it looks
const OLD = 5000; // results of a growing log are fetched again after this

/** `calls`: jump(offset), hits() when what is marked changed, wrap(on), middle() gives the offset that is looked at. */
export class Bar {
  #options;
  #calls;
  #badge;
  #input;
  #count;
  #found = null;
  #fetched = 0;
  #at = -1;
  #timer = 0;
  #request = null;

  constructor(options, calls) {
    this.#options = options;
    this.#calls = calls;
    this.needle = "";
    this.element = this.#build();
  }

  state(state) {
    this.#badge.textContent = WORDS[state] ?? state;
    this.#badge.dataset.state = state;
  }

  close() {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  #build() {
    this.#badge = node("span", "log-badge", { role: "status" });
    this.state("connecting");
    this.#input = node("input", "log-search", { type: "search", placeholder: "Search", maxlength: "500" });
    this.#input.setAttribute("aria-label", `Search the ${this.#options.label}`);
    this.#count = node("span", "log-count", { role: "status" });
    const previous = button("↑", "Previous match", () => this.#step(-1));
    const next = button("↓", "Next match", () => this.#step(1));
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), TYPING);
    });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#step(event.shiftKey ? -1 : 1);
    });
    const wrap = button("Wrap", "Wrap long lines", () => {
      const on = wrap.getAttribute("aria-pressed") !== "true";
      wrap.setAttribute("aria-pressed", String(on));
      this.#calls.wrap(on);
    });
    wrap.setAttribute("aria-pressed", "false");
    const bar = node("div", "log-bar");
    bar.append(this.#badge);
    if (this.#options.searchUrl) bar.append(this.#input, previous, next, this.#count);
    bar.append(wrap);
    if (this.#options.download) {
      const link = node("a", "log-download", { href: this.#options.download, download: "" });
      link.textContent = "Download";
      bar.append(link);
    }
    return bar;
  }

  async #search() {
    clearTimeout(this.#timer);
    this.#request?.abort();
    const text = this.#input.value;
    this.needle = text.toLowerCase();
    this.#calls.hits();
    this.#found = null;
    this.#at = -1;
    if (!text) {
      this.#count.textContent = "";
      return;
    }
    const request = (this.#request = new AbortController());
    this.#count.textContent = "…";
    try {
      const url = `${this.#options.searchUrl}?${new URLSearchParams({ q: text, limit: 5000 })}`;
      const answer = await fetch(url, { signal: request.signal, headers: { Accept: "application/json" } });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.message);
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
    const here = this.#calls.middle();
    const place = this.#found.matches.findIndex(([line]) => line >= here);
    return place < 0 ? this.#found.matches.length - 1 : place;
  }

  async #step(by) {
    if (!this.#found || Date.now() - this.#fetched > OLD) {
      const line = this.#found?.matches[this.#at]?.[0];
      await this.#search();
      const place = this.#found?.matches.findIndex(([each]) => each === line) ?? -1;
      if (place < 0) return;
      this.#at = place;
    }
    const size = this.#found.matches.length;
    if (size) this.#show((this.#at + by + size) % size);
  }

  #show(place) {
    this.#at = place;
    this.#tell();
    this.#calls.jump(this.#found.matches[place][0]);
  }

  #tell() {
    const { count, matches, complete } = this.#found;
    const older = count - matches.length; // only the newest are listed
    const all = `${count.toLocaleString()}${complete ? "" : "+"}`;
    this.#count.textContent = matches.length ? `${(older + this.#at + 1).toLocaleString()} of ${all}` : "no match";
    this.#count.title = complete ? "" : "The log is long: the newest part of it was not searched in time.";
  }
}

function node(name, className, attributes = {}) {
  const made = document.createElement(name);
  made.className = className;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function button(text, title, press) {
  const made = node("button", "log-button", { type: "button", title, "aria-label": title });
  made.textContent = text;
  made.addEventListener("click", press);
  return made;
}
