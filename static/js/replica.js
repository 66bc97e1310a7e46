// The page of one replica.

import { bdi, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { poll } from "./poll.js";
import { ReplicaLogs } from "./replicalogs.js";
import { drawShare, drawUsed, machine, Meter } from "./share.js";
import { ended, liveOperation, ReplicaState } from "./state.js";
import { age, clockText, exactText, fineDuration, now, setAge, setNow } from "./time.js";
import { drawOperations, TimelineView } from "./timeline.js";
import { addressLink, sentence, setBadge, tone } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new ReplicaState(page);
const at = (id) => document.getElementById(id);
const timeline = new TimelineView({
  timeline: state.timeline,
  url: page.events_url,
  list: at("events"),
  button: at("older"),
  redraw: () => draw(),
});
const logs = new ReplicaLogs({ place: at("log"), tabs: document.querySelectorAll("[data-which]"), id: page.snapshot.replica.id });
const SHARE_WAIT = 3000;
const traffic = h("span", { class: "share figure" }, "not measured");
const uses = h("span", { class: "uses figure" }, h("span"), h("span"));
const meter = new Meter();
const SETUP = /\bsetup\b/i; // in what a launch waits for

function facts(replica) {
  return [
    ["State since", age(replica.ended_at ?? replica.state_since)],
    ["Version", h("a", { href: paths.version(page.service, replica.version) }, `v${replica.version}`)],
    ["Provider", bdi(replica.provider)],
    ["Machine", machine(replica)],
    ["Traffic", traffic],
    ["CPU and memory", ended(replica) ? "" : uses],
    ["URL", replica.url ? addressLink(replica.url) : "none"],
    ["PID", replica.pid ?? "none"],
    ["Restarts in a row", String(replica.restarts)],
    ["Replaces", other(replica.replaces)],
    ["Replaced by", other(state.replacedBy)],
    ["Created", age(replica.created_at)],
    ["UID", h("code", {}, replica.uid)],
  ].filter(([, value]) => value !== "");
}

const other = (number) => (number === null ? "none" : h("a", { href: paths.replica(page.service, number) }, `#${number}`));

function drawFacts(replica) {
  keyed(
    at("facts"),
    facts(replica),
    ([label]) => label,
    ([label]) => h("div", {}, h("dt", {}, label), h("dd")),
    (node, [, value]) => node.lastChild.replaceChildren(value),
  );
}

// When the launch began to wait for setup and when it went on, as its events tell: `[from, to]`, or null without one.
function setupOf(replica) {
  const steps = state.timeline.events.filter((event) => event.kind === "operation").reverse();
  const first = steps.findIndex((event) => event.trigger === "waiting" && SETUP.test(event.reason));
  if (first < 0) return null;
  const next = steps.slice(first + 1).find((event) => event.trigger !== "waiting" || !SETUP.test(event.reason));
  const done = next && next.trigger !== "succeeded" ? next.at : replica.launched_at;
  return [steps[first].at, done];
}

// The parts of a start that have begun: name, from, to.
function parts(replica) {
  const { created_at: created, provisioning_at: taken, launched_at: launched, ready_at: ready } = replica;
  const [begun, done] = setupOf(replica) ?? [null, null];
  const all = [
    ["queued", created, taken],
    ["provisioning", taken, begun ?? launched],
    ["setup", begun, done],
    ["launching", done === launched ? null : done, launched],
    ["starting", launched, ready],
  ];
  return all.filter(([, from]) => from !== null);
}

/** The phases that have begun: `{name, ms, going, failed}`; the last one goes on while the replica does. */
function phases(replica) {
  return parts(replica).map(([name, from, to]) => {
    const end = to ?? (ended(replica) ? replica.ended_at : null);
    const going = end === null;
    const until = going ? (replica.outcome ? Date.parse(replica.state_since) : now()) : Date.parse(end);
    const failed = ended(replica) && to === null;
    return { name, ms: Math.max(0, until - Date.parse(from)), going: going && !replica.outcome, failed };
  });
}

function drawStart(replica) {
  const all = phases(replica);
  keyed(
    at("start-bar"),
    all,
    (phase) => phase.name,
    (phase) => h("i", { class: "phase", data: { phase: phase.name } }),
    (node, phase) => {
      setAttribute(node, "data-failed", phase.failed);
      node.style.flexGrow = Math.max(phase.ms, 1);
      node.title = `${phase.name}: ${fineDuration(phase.ms)}`;
    },
  );
  keyed(
    at("start-list"),
    all,
    (phase) => phase.name,
    (phase) => h("li", { data: { phase: phase.name } }, h("span", {}, phase.name), h("b")),
    (node, phase) => {
      setAttribute(node, "data-failed", phase.failed);
      setText(node.lastChild, fineDuration(phase.ms) + (phase.going ? " so far" : ""));
    },
  );
  const ready = replica.ready_at ? `ready for the first time ${exactText(replica.ready_at)}` : "not ready so far";
  setText(at("start-end"), ended(replica) && !replica.ready_at ? "never ready" : ready);
}

function drawProbe(replica) {
  show(at("probe-none"), replica.probe_at === null);
  show(at("probe"), replica.probe_at !== null);
  if (replica.probe_at === null) return;
  const detail = at("probe-detail");
  setText(detail, sentence(replica.probe_detail));
  setAttribute(detail, "data-tone", replica.probe_ok ? "ok" : "bad");
  setAge(at("probe-at"), replica.probe_at);
  setText(at("probe-took"), replica.probe_seconds === null ? "" : `took ${fineDuration(replica.probe_seconds * 1000)}`);
  show(at("probe-excerpt"), replica.probe_excerpt !== "");
  setText(at("probe-excerpt"), replica.probe_excerpt);
}

function draw() {
  const { replica } = state;
  setBadge(at("state"), replica.state);
  const outcome = replica.outcome && replica.outcome !== replica.state ? `${replica.outcome}: ` : "";
  const waits = state.list().find((operation) => liveOperation(operation) && operation.waits_for)?.waits_for;
  const failing = replica.liveness_failing_since && !replica.outcome;
  const liveness = failing ? ` Its liveness probe has failed since ${clockText(replica.liveness_failing_since)}.` : "";
  const waiting = waits ? ` It waits for: ${sentence(waits)}` : "";
  setText(at("sentence"), replica.forgotten ? "This replica was forgotten." : outcome + sentence(replica.reason) + liveness + waiting);
  at("sentence").dataset.tone = tone(replica.outcome ?? replica.state) === "bad" ? "bad" : "off";
  drawFacts(replica);
  drawStart(replica);
  drawProbe(replica);
  show(at("last"), replica.last_lines.length > 0);
  setText(at("last-lines"), replica.last_lines.join("\n"));
  drawOperations(at("operations"), state.list(), page.can);
  timeline.draw();
  logs.draw(replica);
  const terminate = at("terminate");
  if (terminate) {
    show(terminate, !ended(replica) && !replica.forgotten);
    terminate.disabled = replica.retire_reason !== "";
  }
}

function head() {
  const { replica } = state;
  setTitle(`#${replica.number} ${replica.state} · ${page.service}`, tone(replica.state) === "bad");
}

live({ state, url: page.url, service: page.service, draw, head });
if (!ended(state.replica)) {
  poll(paths.samples(page.service, "range=60&step=60"), SHARE_WAIT, ({ replicas, usage }) => {
    meter.take(usage);
    drawUsed(uses, meter.of(state.replica.number), " · ");
    drawShare(traffic, replicas[state.replica.number]);
    if (traffic.textContent === "") setText(traffic, "none");
  });
}
// Whoever comes for the lines of a log is led to them.
if (/^#(run|launch)\b/.test(location.hash)) document.querySelector(".logs").scrollIntoView();
setInterval(() => {
  if (!document.hidden && !state.replica.ready_at && !state.replica.outcome) drawStart(state.replica);
}, 1000);
