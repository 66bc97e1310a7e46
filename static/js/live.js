// Keeps a page live: feed -> state -> one drawing per frame; and shows how the connection is.

import { Feed } from "./feed.js";
import { setAttribute, setText } from "./dom.js";
import * as paths from "./paths.js";
import { clockText, duration, setNow } from "./time.js";

const RETRY = 2000;
const APART = 1500; // between two snapshots that events asked for
const WORDS = {
  connecting: "Connecting",
  live: "Live",
  lost: "Reconnecting",
  "signed-out": "Signed out",
};
const PATIENCE = 400; // a connection that comes at once is not worth a word

/**
 * Draw `state` now, and again after each batch of events. `url` is where a new snapshot is when events are missing.
 * It may be a function, where the address changes. `draw` may be called at any time and must be cheap when nothing
 * changed. `head` sets the title and the icon: of a page that nobody sees they are all that is drawn, until it is seen
 * again. Returns {redraw, reload, feed}: `reload` takes a snapshot from where `url` is now.
 */
export function live({ state, url, service = null, draw, head = () => {} }) {
  const feed = new Feed({ after: state.cursor, service });
  let behind = false;
  const redraw = () => {
    head();
    behind = document.hidden;
    if (!behind) draw();
  };
  const address = () => (typeof url === "function" ? url() : url);
  let fetching = false;
  let fetched = 0;
  let asked = 0;

  async function startOver() {
    if (fetching) return;
    fetching = true;
    try {
      const snapshot = await fetchSnapshot(address());
      fetched = Date.now();
      setNow(snapshot.now);
      state.load(snapshot);
      feed.resume(snapshot.cursor);
      redraw();
    } catch (error) {
      if (error instanceof Gone) location.reload();
      else setTimeout(startOver, RETRY);
    } finally {
      fetching = false;
    }
  }

  // The events that come meanwhile, and those that the snapshot knows already, are harmless: the feed goes on.
  async function reload() {
    asked += 1;
    const mine = asked;
    try {
      const snapshot = await fetchSnapshot(address());
      if (mine !== asked) return; // a later one is on its way
      fetched = Date.now();
      setNow(snapshot.now);
      state.load(snapshot);
      redraw();
    } catch (error) {
      if (error instanceof Gone) location.reload();
      else if (mine === asked) setTimeout(() => mine === asked && reload(), RETRY);
    }
  }

  let waiting = 0;
  const soon = () => {
    if (waiting) return;
    const wait = Math.max(0, fetched + APART - Date.now());
    waiting = setTimeout(() => {
      waiting = 0;
      if (state.stale) startOver();
    }, wait);
  };
  feed.addEventListener("batch", ({ detail: events }) => {
    for (const event of events) state.apply(event);
    if (state.stale) soon();
    redraw();
  });
  feed.addEventListener("reset", startOver);
  document.addEventListener("visibilitychange", () => behind && redraw());
  showConnection(feed);
  head();
  draw();
  feed.start();
  return { redraw, reload, feed };
}

/** The page's thing is not there any more, or is not for this user. */
class Gone extends Error {}

async function fetchSnapshot(url) {
  const response = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
  if ([401, 403, 404].includes(response.status)) throw new Gone(response.statusText);
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}

/** Show the feed's state in the header, and for how long the page has been without news. */
export function showConnection(feed) {
  const node = document.getElementById("connection");
  const text = node.querySelector("[data-text]");
  const old = node.appendChild(document.createElement("small"));
  old.setAttribute("aria-hidden", "true"); // it changes each second, which nobody wants to hear
  const tellAge = () => setText(old, feed.state === "lost" && feed.heard ? `, ${duration(Date.now() - feed.heard)} old` : "");
  setInterval(() => document.hidden || tellAge(), 1000);
  const show = () => {
    const { state, since } = feed;
    const fresh = state === "connecting" && Date.now() - since < PATIENCE;
    setAttribute(node, "data-state", fresh ? "live" : state);
    const when = clockText(new Date(since).toISOString());
    setText(text, state === "lost" ? `Reconnecting since ${when}` : WORDS[fresh ? "live" : state]);
    node.title = state === "live" ? "What you see is what is." : `What you see is as of ${when}.`;
    setAttribute(node, "href", state === "signed-out" ? paths.signIn() : null);
    tellAge();
    if (fresh) setTimeout(show, PATIENCE);
  };
  feed.addEventListener("state", show);
  show();
}

/** The page's title and icon, with a mark when there is trouble. */
export function setTitle(text, trouble) {
  const title = `${trouble ? "▲ " : ""}${text} · Rollcall`;
  if (document.title !== title) document.title = title;
  const icon = document.querySelector("link[rel=icon]");
  setAttribute(icon, "href", trouble ? icon.dataset.trouble : icon.dataset.calm);
}
