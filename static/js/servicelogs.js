// The page of all logs of a service: which replicas are chosen, and their logs as one.

import { h, keyed, link, pageData, setAttribute, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import { MergedLog } from "./mergedlog.js";
import * as paths from "./paths.js";
import { ended, ServiceState } from "./state.js";
import { setNow } from "./time.js";
import { badge, setBadge, tone } from "./words.js";

const MOST = 12; // each is a websocket, and more colours nobody tells apart
const LINE = /^#(\d{1,9})-(\d{1,15})$/;
const page = pageData();
setNow(page.snapshot.now);
const state = new ServiceState(page);
const at = (id) => document.getElementById(id);
let chosen = asked(); // numbers, or null: those that live

const view = new MergedLog(at("log"), {
  label: `logs of ${state.service.name}`,
  picked: (number, offset) => history.replaceState(null, "", address(number, offset)),
  link: (number, offset) => new URL(address(number, offset), location.href).href,
});

function asked() {
  const text = new URLSearchParams(location.search).get("replicas");
  const numbers = (text ?? "").split(",").filter((each) => /^\d{1,9}$/.test(each)).map(Number);
  return numbers.length ? new Set(numbers.slice(0, MOST)) : null;
}

// The address of what is shown, or of a line of it with the replicas beside which it stands.
function address(number = null, offset = null) {
  const replicas = number === null ? chosen : new Set(shown().map((replica) => replica.number));
  const query = replicas ? `?replicas=${[...replicas].sort((a, b) => a - b).join(",")}` : "";
  return `${location.pathname}${query}${number === null ? "" : `#${number}-${offset}`}`;
}

const all = () => [...state.live(), ...state.history()];

const watched = new Set(); // ids of those that lived while one looked: what they say last is what one looks for

// Those that were chosen; else the newest that live, and those that ended while one looked; else the newest that ended.
function shown() {
  if (chosen) return all().filter((replica) => chosen.has(replica.number)).slice(0, MOST);
  const alive = state.live().slice(0, MOST);
  for (const replica of alive) watched.add(replica.id);
  const some = [...alive, ...state.history().filter((replica) => watched.has(replica.id))].slice(0, MOST);
  return some.length ? some : state.history().slice(0, 4);
}

function toggle(number, on) {
  const numbers = new Set(shown().map((replica) => replica.number));
  if (on) numbers.add(number);
  else numbers.delete(number);
  chosen = numbers;
  history.replaceState(null, "", address());
  draw();
}

function chip(replica) {
  const box = h("input", { type: "checkbox", value: replica.number, onchange: () => toggle(replica.number, box.checked) });
  const name = h("b", {}, `#${replica.number}`);
  const own = h("a", { title: `Page of replica ${replica.number}`, href: `${paths.replica(state.service.name, replica.number)}#run` }, "own log");
  return h("li", { class: "log-chip", data: { colour: replica.number % 8 } }, h("label", { class: "check" }, box, name, badge(replica.state)), own);
}

function draw() {
  const numbers = new Set(shown().map((replica) => replica.number));
  const full = numbers.size >= MOST;
  for (const [list, replicas] of [[at("alive"), state.live()], [at("past"), state.history()]]) {
    const items = replicas.map((replica) => ({ replica, on: numbers.has(replica.number) }));
    keyed(list, items, ({ replica }) => replica.id, ({ replica }) => chip(replica), (node, { replica, on }) => {
      const box = node.querySelector("input");
      box.checked = on;
      box.disabled = full && !on;
      setBadge(node.querySelector(".badge"), replica.state);
      setAttribute(node, "data-on", on);
    });
  }
  show(at("past-place"), state.history().length > 0);
  setText(at("past-count"), `${state.ended} ended`);
  setText(at("chosen"), full ? `${numbers.size} replicas, and no more at once` : chosen ? "" : "those that live");
  show(at("live-ones"), chosen !== null);
  view.choose(shown());
}

const head = () => setTitle(`Logs · ${state.service.name}`, tone(state.service.status) === "bad");

function goToLine() {
  const line = LINE.exec(location.hash);
  if (!line) return;
  const [number, offset] = line.slice(1).map(Number);
  if (!shown().some((replica) => replica.number === number)) toggle(number, true);
  view.jump(number, offset);
}

at("live-ones").addEventListener("click", () => {
  chosen = null;
  watched.clear();
  history.replaceState(null, "", address());
  draw();
});
at("past-place").open = chosen !== null && state.history().some((replica) => chosen.has(replica.number));
link(at("service"), paths.service(state.service.name));
live({ state, url: page.url, service: state.service.name, draw, head });
goToLine();
addEventListener("hashchange", goToLine);
addEventListener("popstate", () => {
  chosen = asked();
  draw();
});
