// What was written into a page and has not arrived yet: kept in this tab for each address, until the server says so.
// It is its author's: nobody else who signs in here is offered it, and signing out drops it.

import { minuteText } from "./time.js";

const KEY = "rollcall-draft:";

export class Draft {
  /** `user` writes here; `start` are the fields as the page came, `refused` when that is what was sent in vain. */
  constructor(user, start, refused) {
    this.user = user;
    this.start = refused ? null : JSON.stringify(start);
    this.key = KEY + location.pathname + location.search;
    const found = read(this.key);
    /** `{user, at, fields}` of what was not sent from here, or null. */
    this.found = found?.user === user ? found : null;
  }

  /** Keep the fields; as they came, they need no keeping. */
  keep(fields) {
    if (JSON.stringify(fields) === this.start) drop(this.key);
    else write(this.key, { user: this.user, at: Date.now(), fields });
  }

  /** When it was written last, by the reader's clock: "14:05". */
  static timeOf(found) {
    return minuteText(found.at);
  }
}

/** Forget what the server says that it has, and everything when its author signs out. */
export function prepareDrafts() {
  for (const node of document.querySelectorAll("[data-sent]")) drop(KEY + node.dataset.sent);
  document.querySelector("form[data-sign-out]")?.addEventListener("submit", () => {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(KEY)) drop(key);
  });
}

// A browser that keeps nothing for pages throws; then there is no draft.
function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // too long for it, or switched off
  }
}

function drop(key) {
  try {
    sessionStorage.removeItem(key);
  } catch {
    // switched off
  }
}
