// The page of a service's versions.

import { bdi, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { live } from "./live.js";
import * as paths from "./paths.js";
import { VersionsState } from "./state.js";
import { age, setNow } from "./time.js";
import { setBadge } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new VersionsState(page);
const name = page.snapshot.service.name;
const at = (id) => document.getElementById(id);
const body = document.querySelector("#versions tbody");

const ended = (rollout) => rollout.state !== "PROGRESSING";

function row({ version }) {
  const { number } = version;
  return h(
    "tr",
    { data: { row: number } },
    h(
      "td",
      { class: "number" },
      h("a", { href: paths.version(name, number), data: { main: "" } }, `v${number}`),
      h("span", { class: "badge", data: { tone: "ok" } }, "active"),
    ),
    h("td", { class: "why" }, bdi(version.message, { class: "clamp", title: version.message || null })),
    h("td", { class: "rollout" }, h("span", { class: "badge" })),
    h("td", { class: "by" }, bdi(version.created_by)),
    h("td", { class: "age" }, age(version.created_at)),
    h("td", { class: "pick" }, radio("old", number), radio("new", number), edit(number)),
  );
}

function radio(side, number) {
  const input = h("input", { type: "radio", name: side, value: number, "aria-label": `version ${number} as the ${side} one` });
  return h("label", {}, input, side);
}

const edit = (number) => (page.can.deploy ? h("a", { href: paths.edit(name, number), title: `Edit the text of version ${number}` }, "Edit") : null);

function update(node, { version, active, rollout }) {
  show(node.querySelector(".number .badge"), active);
  const badge = node.querySelector(".rollout .badge");
  setBadge(badge, rollout ? (rollout.paused_at && !ended(rollout) ? "PAUSED" : rollout.state) : "");
  setAttribute(badge, "title", rollout?.reason || null);
  node.dataset.version = version.number;
}

const picked = (side) => document.querySelector(`#versions input[name=${side}]:checked`)?.value;

function judge() {
  at("compare").disabled = !picked("old") || !picked("new") || picked("old") === picked("new");
}

// The two newest are the likeliest to be compared; what somebody has picked stays.
function pick(versions) {
  const [newest, before] = versions;
  if (!before || picked("old") || picked("new")) return;
  document.querySelector(`#versions input[name=new][value="${newest.number}"]`).checked = true;
  document.querySelector(`#versions input[name=old][value="${before.number}"]`).checked = true;
}

const entries = new Map(); // the same object while nothing changed, so that nothing is drawn anew
function entry(version, outcomes) {
  const active = state.service.version === version.number;
  const rollout = outcomes.get(version.number) ?? null;
  const known = entries.get(version.id);
  if (known?.version === version && known.active === active && known.rollout === rollout) return known;
  entries.set(version.id, { version, active, rollout });
  return entries.get(version.id);
}

function draw() {
  const versions = state.list();
  const outcomes = state.outcomes();
  keyed(body, versions.map((version) => entry(version, outcomes)), ({ version }) => version.id, row, update);
  pick(versions);
  judge();
  show(at("none"), versions.length === 0);
  setText(at("count"), state.more || page.older ? "" : String(versions.length));
  show(at("older"), state.more);
  if (state.more) at("older").setAttribute("href", `?before=${versions.at(-1).number}`);
}

body.addEventListener("change", judge);
live({ state, url: page.url, service: name, draw });
