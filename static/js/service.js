// The page of one service.

import { bdi, fill, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { drawRollout } from "./rollout.js";
import { drawShare, drawUsed, machine } from "./share.js";
import { Shown } from "./shown.js";
import { ServiceState } from "./state.js";
import { age, fineDuration, localize, setAge, setNow } from "./time.js";
import { drawOperations, setCount, TimelineView } from "./timeline.js";
import { Traffic } from "./traffic.js";
import { addressLink, badge, calm, copyButton, count, drawCells, inTrouble, sentence, setBadge, tone, wanted } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new ServiceState(page);
const name = page.snapshot.service.name;
const at = (id) => document.getElementById(id);
const timeline = new TimelineView({
  timeline: state.timeline,
  url: page.events_url,
  list: at("events"),
  button: at("older"),
  nothing: at("no-events"),
  redraw: () => draw(),
});
const traffic = new Traffic(name, state, drawMeasured);
const chosen = new Shown(() => draw());
const FLIGHT_MOST = 6;
let specShown = page.snapshot.service.version;

function row({ replica }) {
  return h(
    "tr",
    { data: { row: replica.number, state: replica.state } },
    h("td", { class: "number" }, h("a", { href: paths.replica(name, replica.number), data: { main: "" } }, `#${replica.number}`)),
    h("td", { class: "state" }, badge(replica.state), h("span", { class: "since" }, age(replica.state_since))),
    h("td", { class: "why" }, bdi("", { class: "clamp" }), h("span", { class: "line" })),
    h(
      "td",
      { class: "version figure", data: { label: "version" } },
      h("b"),
      h("span", { class: "restarts", title: "Failures in a row" }),
      h("span", { class: "machine" }),
    ),
    h("td", { class: "url", data: { label: "url" } }, h("span"), h("span", { class: "share figure" })),
    h("td", { class: "uses figure", data: { label: "uses" } }, h("span"), h("span")),
    h("td", { class: "probe", data: { label: "probe" } }, h("b"), " ", h("span", { class: "since" }, "for ", age(replica.probe_at))),
    page.can.operate ? h("td", { class: "do" }, terminateButton(replica)) : null,
  );
}

function terminateButton(replica) {
  const thing = `replica ${replica.number} of ${name}`;
  return h(
    "button",
    {
      type: "button",
      class: "small",
      "aria-label": `Terminate ${thing}`,
      data: { dialog: "dialog-terminate", action: paths.terminate(name, replica.number), fillThing: thing },
    },
    "Terminate",
  );
}

function update(node, { replica, heir }, shown) {
  const before = shown?.replica;
  node.dataset.state = replica.state;
  setBadge(node.querySelector(".badge"), replica.state);
  setAge(node.querySelector(".state time"), replica.ended_at ?? replica.state_since);
  const outcome = replica.outcome && replica.outcome !== replica.state ? `${replica.outcome}: ` : "";
  const why = node.querySelector(".why bdi");
  const fine = replica.state === "READY" && replica.probe_ok && !replica.retire_reason; // the last probe says it all
  setText(why, fine ? "" : outcome + sentence(replica.retire_reason && !replica.ended_at ? replica.retire_reason : replica.reason));
  why.title = why.textContent;
  setText(node.querySelector(".version b"), `v${replica.version}`);
  setText(node.querySelector(".machine"), machine(replica));
  setText(node.querySelector(".restarts"), replica.restarts ? count(replica.restarts, "restart") : "");
  drawLine(node.querySelector(".line"), replica, heir);
  const probe = node.querySelector(".probe b");
  setText(probe, probeText(replica));
  setAttribute(probe, "title", replica.probe_detail || null);
  setAttribute(probe, "data-tone", replica.probe_ok === null ? null : replica.probe_ok ? "ok" : "bad");
  setAge(node.querySelector(".probe time"), replica.probe_at);
  if (!before || before.url !== replica.url) node.querySelector(".url span").replaceChildren(replica.url ? addressLink(replica.url) : "");
  const button = node.querySelector(".do button");
  if (button) {
    button.disabled = replica.ended_at !== null || replica.retire_reason !== "";
    show(button, replica.ended_at === null);
  }
}

// What each live replica has of the traffic, and what it uses, as it was last measured.
function drawMeasured() {
  for (const node of document.querySelectorAll("#replicas tbody tr")) {
    drawShare(node.querySelector(".share"), traffic.shares[node.dataset.row]);
    drawUsed(node.querySelector(".uses"), traffic.meter.of(node.dataset.row));
  }
}

// Whom a replica took the place of while it lives, and who took its place once it has ended.
function drawLine(node, replica, heir) {
  const [word, number] = replica.ended_at === null ? ["replaces", replica.replaces] : ["replaced by", heir];
  const other = number === null ? [] : [`${word} `, h("a", { href: paths.replica(name, number) }, `#${number}`)];
  fill(node, failingLines(replica), other.length && failingLines(replica) ? " · " : null, other);
}

// One click to what a failed replica said last: in its own log, or in its launch's where it never got to run.
function failingLines(replica) {
  if (tone(replica.outcome ?? replica.state) !== "bad" && replica.state !== "NOT_READY") return null;
  const log = replica.launched_at === null ? "launch" : "run";
  return h("a", { href: `${paths.replica(name, replica.number)}#${log}` }, replica.state === "NOT_READY" ? "its log" : "failing lines");
}

const shownRows = new Map(); // the same object while nothing changed, so that nothing is drawn anew
function entry(replica, heirs) {
  const heir = heirs.get(replica.number) ?? null;
  const known = shownRows.get(replica.id);
  if (known?.replica === replica && known.heir === heir) return known;
  shownRows.set(replica.id, { replica, heir });
  return shownRows.get(replica.id);
}

function probeText(replica) {
  if (replica.probe_ok === null) return "";
  if (!replica.probe_ok) return "failed";
  return replica.probe_seconds === null ? "passed" : `passed, ${fineDuration(replica.probe_seconds * 1000)}`;
}

function drawEndpoint(address, reason) {
  const shown = address ?? (reason ? `none: ${reason}` : "");
  show(at("endpoint-fact"), shown !== "");
  if (at("endpoint").dataset.shown === shown) return;
  at("endpoint").dataset.shown = shown;
  fill(at("endpoint"), address ? [addressLink(address), " ", copyButton(address, "Copy the endpoint")] : shown);
}

const readyText = (service) => `${service.ready} / ${wanted(service)}`;

function drawHead(service) {
  setBadge(at("status"), service.status);
  setText(at("sentence"), state.forgotten ? "This service was forgotten after it was taken down." : sentence(service.reason));
  at("sentence").dataset.tone = inTrouble(service) ? "bad" : "off";
  setText(at("ready"), readyText(service));
  setText(at("version"), service.version === null ? "none" : `v${service.version}`);
  setAge(at("age"), service.created_at);
  show(at("pinned-fact"), service.pinned);
  setText(at("owner"), service.owner ?? "");
  show(at("owner-fact"), service.owner !== null);
  drawEndpoint(service.endpoint, service.endpoint_reason ?? "");
  for (const node of document.querySelectorAll("[data-when]")) show(node, !state.forgotten && node.dataset.when.includes(service.desired));
  const expected = document.querySelector("#dialog-restart [name=expected]");
  if (expected && !at("dialog-restart").open) expected.value = service.version ?? 0;
  const target = document.querySelector("#dialog-scale [name=target]");
  if (target && !at("dialog-scale").open) target.value = service.target;
}

function head() {
  const { service } = state;
  setTitle(`${name} · ${readyText(service)} ready`, inTrouble(service));
}

// The text comes from the server with its colours, already escaped; it is parsed apart from the page.
async function drawSpec(number) {
  if (number === specShown || number === null || state.forgotten) return;
  specShown = number;
  const response = await fetch(paths.spec(name, number)).catch(() => null);
  if (!response?.ok) {
    if (specShown === number) specShown = undefined; // the next change tries again
    return;
  }
  const part = new DOMParser().parseFromString(await response.text(), "text/html");
  if (specShown !== number) return; // a newer one is on its way
  localize(part);
  at("spec").replaceChildren(...part.body.childNodes);
}

function draw() {
  const replicas = state.live();
  calm(replicas.length);
  drawHead(state.service);
  drawRollout(state, name, page.can);
  drawCells(at("cells"), state.service, [...replicas].reverse(), (replica) => paths.replica(name, replica.number));
  const heirs = state.heirs();
  const rows = (list) => list.map((replica) => entry(replica, heirs));
  keyed(document.querySelector("#replicas tbody"), rows(chosen.of(replicas)), ({ replica }) => replica.id, row, update);
  drawMeasured();
  setCount("live-count", replicas.length);
  const history = state.history();
  keyed(document.querySelector("#history tbody"), rows(history), ({ replica }) => replica.id, row, update);
  show(at("past"), history.length > 0);
  const newest = history.length < state.ended ? `, the newest ${history.length} shown` : "";
  setText(at("past-count"), `${count(state.ended, "ended replica")}${newest}`);
  const operations = state.operations.values().sort((a, b) => a.id - b.id);
  show(at("flight"), operations.length > 0);
  setCount("flight-count", operations.length);
  drawOperations(at("operations"), operations.slice(0, FLIGHT_MOST), page.can);
  show(at("more-flight"), operations.length > FLIGHT_MOST);
  setText(at("more-flight"), `and ${operations.length - FLIGHT_MOST} more`);
  timeline.draw();
  traffic.read();
  drawSpec(state.service.version);
}

at("event-choice").addEventListener("change", ({ target }) => {
  const address = new URL(location.href);
  if (target.value) address.searchParams.set("events", target.value);
  else address.searchParams.delete("events");
  location.assign(address);
});
traffic.start(live({ state, url: page.url, service: name, draw, head }).feed);
