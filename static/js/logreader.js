// Parts of a log over plain HTTP: pages of lines, searches, and which part was read in a time.

const JSON_ONLY = { Accept: "application/json" };

/** The log at `address` (such as /logs/replica/5/run). What fails gives null, and `trouble` says why. */
export class LogReader {
  #address;
  #loading = null;

  constructor(address) {
    this.#address = address;
    this.trouble = "";
  }

  /** A page or a span is on its way. */
  get busy() {
    return this.#loading !== null;
  }

  /** Let go of what is on its way. */
  abort() {
    this.#loading?.abort();
    this.#loading = null;
  }

  /** Lines on one side of an offset. One at a time; null also when another took its place. */
  page(query) {
    return this.#one("page", query);
  }

  /** The page that ends where the line at `offset` begins, and the page that begins there. */
  async around(offset, lines, bounds = {}) {
    const after = await this.page({ after: offset, lines, ...bounds });
    const before = after && (await this.page({ before: after.start, lines, ...bounds }));
    return before ? [before, after] : [null, null];
  }

  /** Which part was read between two moments (ms; null: no bound). */
  span(from, to) {
    return this.#one("span", { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) });
  }

  /** What a search finds. Throws what `fetch` throws, and an Error with the server's words. */
  async search(text, signal, bounds = {}) {
    const query = new URLSearchParams({ q: text, limit: 5000, ...bounds });
    const answer = await fetch(`${this.#address}/search?${query}`, { signal, headers: JSON_ONLY });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.message);
    return found;
  }

  async #one(what, query) {
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    this.trouble = "";
    try {
      const url = `${this.#address}/${what}?${new URLSearchParams(query)}`;
      const answer = await fetch(url, { signal: loading.signal, headers: JSON_ONLY });
      if (!answer.ok) throw new Error((await answer.json()).message);
      return await answer.json();
    } catch (error) {
      if (!loading.signal.aborted) this.trouble = `More lines could not be loaded: ${error.message}`;
      return null;
    } finally {
      if (this.#loading === loading) this.#loading = null;
    }
  }
}
