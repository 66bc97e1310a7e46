// The page of the system: asks each few seconds how its parts are; what logs take, now and then.

import { bdi, h, keyed, pageData, setAttribute, setText } from "./dom.js";
import { setTitle } from "./live.js";
import { poll } from "./poll.js";
import { age, clockText, setNow } from "./time.js";
import { badge, bytes, count, setBadge } from "./words.js";

const page = pageData();
const at = (id) => document.getElementById(id);
const EVERY = 3000;
const DISK_EVERY = 20_000;
const TYPING = 300;
let heard = Date.now();
let lost = false;

function draw(state) {
  setNow(state.now);
  const ill = state.parts.filter((part) => part.ok === false);
  setBadge(at("verdict"), ill.length ? "FAILED" : "READY");
  const unknown = state.parts.some((part) => part.ok === null);
  setText(at("sentence"), ill.length ? `${ill.map((part) => part.name).join(", ")}: not at work. It is replaced by itself within seconds; if not, logs/control-plane.log in the home says why.` : unknown ? "Every part that can be asked is at work; of the others nobody can tell yet." : "Every part is at work.");
  at("sentence").dataset.tone = ill.length ? "bad" : "off";
  keyed(document.querySelector("#parts tbody"), state.parts, (part) => part.name, row, update);
  drawPairs(at("counts"), counts(state));
  setTitle(ill.length ? `${count(ill.length, "part")} in trouble · System` : "System", ill.length > 0);
}

function row(part) {
  return h("tr", {}, h("td", {}, h("b", {}, part.name)), h("td", {}, badge("")), h("td", { class: "why" }, bdi("")), h("td", { class: "figure" }, bdi("")));
}

function update(node, part) {
  setBadge(node.querySelector(".badge"), part.ok ? "READY" : part.ok === null ? "UNKNOWN" : "FAILED");
  setText(node.querySelector(".why bdi"), part.detail);
  setText(node.lastChild.firstChild, part.pid ? `${part.host} ${part.pid}` : part.host);
}

function counts({ feed, counts: rows }) {
  const lag = feed.lag_seconds === null ? "not started" : `${feed.lag_seconds.toFixed(1)} s`;
  const of = (name) => String(rows?.[name] ?? "not known");
  return [
    ["Feed lag", lag],
    ["Read up to event", String(feed.cursor)],
    ["Newest event", rows?.newest_event ? h("span", {}, `${rows.newest_event}, `, age(rows.newest_event_at), " ago") : "none"],
    ["Open sockets", String(feed.sockets)],
    ["Services", of("services")],
    ["Live replicas", of("replicas")],
    ["Live operations", of("operations")],
  ];
}

function drawPairs(list, pairs) {
  keyed(
    list,
    pairs,
    ([name]) => name,
    ([name]) => h("div", {}, h("dt", {}, name), h("dd")),
    (node, [, value]) => (typeof value === "string" ? setText(node.lastChild, value) : node.lastChild.replaceChildren(value)),
  );
}

function drawDisk({ free, total, folders }) {
  const logs = folders.map(({ name, files, bytes: size }) => [name === "database" ? "Database" : `Logs of ${name}`.replace("Logs of access logs", "Access logs"), `${bytes(size)} in ${count(files, "file")}`]);
  drawPairs(at("disk"), [["Free", `${bytes(free)} of ${bytes(total)}`], ...logs]);
}

// There is no socket here: the badge tells whether the last question was answered.
function showConnection() {
  const node = at("connection");
  setAttribute(node, "data-state", lost ? "lost" : "live");
  const when = clockText(new Date(heard).toISOString());
  setText(node.querySelector("[data-text]"), lost ? `No answer since ${when}` : "Live");
  node.title = lost ? `What you see is as of ${when}.` : "Asked each 3 seconds.";
}

function answered(state) {
  heard = Date.now();
  lost = false;
  showConnection();
  at("parts").classList.remove("stale");
  draw(state);
}

if (matchMedia("(max-width: 760px)").matches) at("settings").open = false;
draw(page.snapshot);
showConnection();
// Who answers nothing is not at work: what the page said before is no news any more.
poll(page.url, EVERY, answered, (error) => {
  lost = true;
  showConnection();
  setBadge(at("verdict"), "UNKNOWN");
  const why = error.message.startsWith("the server answered") ? error.message : "the web process does not answer";
  setText(at("sentence"), `Nothing is known since ${clockText(new Date(heard).toISOString())}: ${why}. It is replaced by itself within seconds; if not, logs/control-plane.log in the home says why.`);
  at("sentence").dataset.tone = "bad";
  at("parts").classList.add("stale");
  setTitle("no answer · System", true);
});
const lookAtDisk = poll(page.disk_url, DISK_EVERY, drawDisk);

const dialog = at("dialog-prune");
if (dialog) {
  const days = dialog.querySelector("[name=days]");
  let typing = 0;
  const tell = async () => {
    const response = await fetch(`${page.count_url}?days=${encodeURIComponent(days.value)}`, { headers: { Accept: "application/json" } }).catch(() => null);
    const found = response?.ok ? await response.json() : null;
    setText(at("prune-count"), found ? `${count(found.replicas, "ended replica")}, ${count(found.operations, "operation")} and ${count(found.events, "event")} would go.` : "\u00a0");
  };
  at("prune").addEventListener("click", tell);
  days.addEventListener("input", () => {
    clearTimeout(typing);
    if (days.validity.valid) typing = setTimeout(tell, TYPING);
  });
  dialog.addEventListener("acted", () => setTimeout(lookAtDisk, EVERY));
}
