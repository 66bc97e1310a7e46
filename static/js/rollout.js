// The panel of a service's latest rollout: old against new, how far it is, what it waits for, and what may be done now.

import { h, keyed, setAttribute, setText, show } from "./dom.js";
import * as paths from "./paths.js";
import { listed } from "./state.js";
import { setAge, setUntil } from "./time.js";
import { count, drawStrip, sentence, setBadge } from "./words.js";

const at = (id) => document.getElementById(id);
const KINDS = { first: "First", update: "Update", restart: "Restart", rollback: "Rollback" };
const MODES = { in_place: "in place", rolling: "rolling", blue_green: "blue-green" };
const STARTING = ["PENDING", "PROVISIONING", "STARTING", "NOT_READY"];

/** Draw the panel of `state`, a ServiceState; `can` tells what the user may do. */
export function drawRollout(state, name, can) {
  const { rollout, service } = state;
  const shown = rollout !== null && service.desired === "UP" && !state.forgotten;
  show(at("rollout"), shown);
  if (!shown) return;
  const going = rollout.state === "PROGRESSING";
  setBadge(at("rollout-state"), going && rollout.paused_at ? "PAUSED" : rollout.state);
  setText(at("rollout-what"), title(rollout));
  setAge(at("rollout-since"), rollout.ended_at ?? rollout.started_at);
  show(at("rollout-when").querySelector(".going"), going);
  show(at("rollout-when").querySelector(".over"), !going);
  setText(at("rollout-reason"), why(state));
  show(at("rollout-body"), going);
  drawButtons(state, can);
  if (going) drawBody(state, name);
}

function title({ kind, mode, from_version: from, to_version: to }) {
  const move = from ? `v${from} → v${to}` : `v${to}`;
  return `${KINDS[kind]} ${move}, ${MODES[mode]}`;
}

// A way back succeeds within a second, and what was left is what people want to know of: so it says why it began as well.
function why(state) {
  const { rollout } = state;
  const begun = rollout.kind === "rollback" ? state.version(rollout.to_version)?.message : "";
  const ended = rollout.state === "PROGRESSING" ? "" : rollout.reason;
  return [begun, ended].filter(Boolean).map(sentence).join(" ");
}

// Which buttons are of use now; the server has the last word.

function allowed(state) {
  const { rollout } = state;
  if (rollout.state !== "PROGRESSING") return {};
  return {
    pause: rollout.paused_at === null,
    resume: rollout.paused_at !== null,
    promote: mayPromote(state),
    abort: rollout.good_version > 0 && !goesBackAlready(state),
  };
}

function mayPromote({ rollout, ...state }) {
  if (rollout.promoted_at !== null) return false;
  if (rollout.mode === "blue_green") return rollout.switched_at !== null;
  return waitsForPromotion(rollout, policyOf(rollout, state.versions));
}

function waitsForPromotion(rollout, policy) {
  const canary = rollout.kind === "update" && rollout.mode === "rolling" && rollout.good_version > 0 && policy?.canary;
  return Boolean(canary) && rollout.promoted_at === null;
}

function goesBackAlready(state) {
  const { rollout } = state;
  const [to, good] = [state.version(rollout.to_version), state.version(rollout.good_version)];
  return rollout.kind === "rollback" && Boolean(to) && to.digest === good?.digest;
}

function drawButtons(state, can) {
  const may = allowed(state);
  for (const verb of ["pause", "resume", "promote", "abort"]) {
    const node = at(`rollout-${verb}`);
    if (node) show(node, can.operate && may[verb] === true);
  }
  for (const field of document.querySelectorAll("input[name=rollout]")) {
    if (!field.closest("dialog")?.open) field.value = state.rollout.id;
  }
  const back = at("rollout-back");
  if (!back) return;
  const from = state.rollout.from_version;
  const ended = state.rollout.state !== "PROGRESSING" && state.rollout.kind !== "rollback"; // nobody went back to return
  show(back, ended && from > 0 && from !== state.service.version);
  setText(back, `Back to v${from}`);
  back.setAttribute("href", `${back.dataset.versions}${from}/#rollback`);
}

const policyOf = (rollout, versions) => versions.values().find(({ number }) => number === rollout.to_version)?.policy ?? null;

// Old against new

function drawBody(state, name) {
  const { rollout, service } = state;
  const live = state.live();
  keyed(at("sides"), sides(live, rollout), ({ version, fresh }) => `${version} ${fresh}`, side, (node, each) => updateSide(node, each, service, name));
  const needed = neededOf(rollout, policyOf(rollout, state.versions), service.target);
  const bar = at("rollout-bar");
  const best = Math.min(rollout.best, needed);
  bar.firstElementChild.style.flexGrow = best;
  bar.lastElementChild.style.flexGrow = Math.max(0, needed - best);
  setAttribute(bar, "aria-valuenow", best);
  setAttribute(bar, "aria-valuemax", needed);
  setText(at("rollout-proved"), `${best} of ${needed}`);
  drawWait(state, live, needed);
  drawLimits(state);
}

function sides(live, rollout) {
  const versions = [...new Set([rollout.to_version, ...live.map(({ version }) => version)])].sort((a, b) => b - a);
  return versions.map((version) => ({
    version,
    fresh: version === rollout.to_version,
    traffic: listed(rollout, version),
    replicas: live.filter((replica) => replica.version === version).reverse(),
  }));
}

function side({ fresh, version }) {
  return h(
    "div",
    { class: "side", data: { side: fresh ? "new" : "old" } },
    h("b", {}, fresh ? "New " : "Old ", h("a", {}, `v${version}`)),
    h("span", { class: "cells big" }),
    h("span", { class: "figure" }),
    h("span", { class: "muted" }),
  );
}

function updateSide(node, { version, fresh, traffic, replicas }, service, name) {
  node.querySelector("a").setAttribute("href", paths.version(name, version));
  const ready = replicas.filter(({ state }) => state === "READY").length;
  const missing = fresh ? Math.max(0, service.target - replicas.length) : 0;
  drawStrip(node.querySelector(".cells"), replicas, missing, (replica) => paths.replica(name, replica.number));
  setText(node.querySelector(".figure"), fresh ? `${ready} of ${service.target} ready` : `${ready} ready, ${count(replicas.length, "replica")} left`);
  setText(node.querySelector(".muted"), trafficOf(traffic, fresh, ready));
}

/** Whether a side gets traffic, which only ready replicas do: `traffic` tells whether its ready ones would. */
export function trafficOf(traffic, fresh, ready) {
  if (traffic && ready === 0 && fresh) return "gets traffic once one is ready";
  return traffic && ready > 0 ? "gets traffic" : "gets no traffic";
}

/** How many replicas of the new version are to prove themselves before something else is waited for. */
function neededOf(rollout, policy, target) {
  return waitsForPromotion(rollout, policy) ? Math.max(1, Math.min(target, amount(policy.canary, target, Math.ceil))) : target;
}

const amount = (value, target, round) => {
  if (typeof value === "string" && value.endsWith("%")) return round((target * Number.parseFloat(value)) / 100);
  return Number(value ?? 0);
};

// What it waits for, and since when

function drawWait(state, live, needed) {
  const [what, since] = waits(state, live, needed);
  setText(at("rollout-wait"), what);
  setAge(at("rollout-wait-since"), since);
  const deadline = deadlineOf(state, needed);
  show(at("rollout-deadline-fact"), deadline !== null);
  setUntil(at("rollout-deadline"), deadline);
}

/** What a rollout waits for and since when: [text, time]. */
export function waits(state, live, needed) {
  const { rollout, service } = state;
  const policy = policyOf(rollout, state.versions);
  if (rollout.paused_at) return ["somebody to resume it", rollout.paused_at];
  if (service.target === 0) return ["a replica to be wanted", service.updated_at];
  const fresh = live.filter(({ version }) => version === rollout.to_version);
  const going = live.find((replica) => replica.outcome !== null && replica.version !== rollout.to_version);
  if (rollout.best >= needed) return waitsAtTheEnd(rollout, policy, live, going);
  const starting = fresh.filter((replica) => STARTING.includes(replica.state)).at(-1);
  if (starting) return [`replica ${starting.number} to become ready`, starting.state_since];
  const young = fresh.filter((replica) => replica.state === "READY").sort((a, b) => (a.state_since < b.state_since ? 1 : -1))[0];
  if (going) return [leavingOf(going), going.state_since];
  if (young && fresh.length > rollout.best) return [`replica ${young.number} to stay ready`, young.state_since];
  return ["the next replica to be launched", rollout.progressed_at];
}

const leavingOf = (replica) => `replica ${replica.number} to end (${replica.state})`;

function waitsAtTheEnd(rollout, policy, live, going) {
  if (waitsForPromotion(rollout, policy)) {
    const bakes = policy.bake_seconds === null ? "somebody to promote it" : `the canary to be ready for ${policy.bake_seconds} s, or somebody to promote it`;
    return [bakes, rollout.progressed_at];
  }
  if (going) return [leavingOf(going), going.state_since];
  const old = live.find(({ version }) => version !== rollout.to_version);
  if (rollout.switched_at && old) return [`the time of the old ones to be over (${policy?.keep_old_seconds ?? 0} s)`, rollout.switched_at];
  return [old ? `replica ${old.number} to go` : "the controller", rollout.progressed_at];
}

// As the planner has it; of a rollback the sentence of the service tells, where it has one.
function deadlineOf({ rollout, service, versions }, needed) {
  const policy = policyOf(rollout, versions);
  const runs = service.target > 0 && !rollout.paused_at && !rollout.switched_at && rollout.good_version > 0 && rollout.best < needed;
  if (!runs || !policy || rollout.kind === "rollback") return null;
  return new Date(Date.parse(rollout.progressed_at) + policy.progress_deadline * 1000).toISOString();
}

function drawLimits(state) {
  const { rollout, service } = state;
  const policy = policyOf(rollout, state.versions);
  const byItself = policy?.auto_rollback !== false && rollout.kind !== "rollback";
  show(at("rollout-good-fact"), rollout.good_version > 0);
  setText(at("rollout-good"), `v${rollout.good_version}${byItself ? "" : ", by hand"}`);
  const bounded = rollout.mode !== "in_place" && policy !== null;
  show(at("rollout-bounds-fact"), bounded);
  if (bounded) setText(at("rollout-bounds"), boundsText(rollout, policy, service.target));
}

/** Within which bounds a rollout moves; a first one has nothing ready that it could keep. */
export function boundsText(rollout, policy, target) {
  if (rollout.mode === "blue_green") return `at most ${2 * target} alive`;
  const surge = amount(policy.max_surge, target, Math.ceil);
  const missing = amount(policy.max_unavailable, target, Math.floor) || (surge === 0 ? 1 : 0);
  if (rollout.kind === "first") return `at most ${target + surge} alive`;
  return `at most ${target + surge} alive, at least ${Math.max(0, target - missing)} ready`;
}
