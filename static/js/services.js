// The page of all services.

import { bdi, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { ServicesState } from "./state.js";
import { age, setAge, setNow } from "./time.js";
import { addressLink, badge, drawCells, inTrouble, sentence, setBadge, wanted } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new ServicesState(page.snapshot);
const body = document.querySelector("#services tbody");
const search = document.querySelector("[data-search]");
search.value = new URLSearchParams(location.search).get("q") ?? "";

function row({ service }) {
  return h(
    "tr",
    { data: { row: service.name } },
    h(
      "td",
      { class: "name" },
      h("a", { href: paths.service(service.name), data: { main: "" }, title: service.name }, bdi(service.name)),
      h("div", { class: "reason" }, bdi("")),
    ),
    h("td", { class: "status" }, badge(service.status)),
    h("td", { class: "ready" }, h("div", {}, h("span", { class: "cells" }), h("span", { class: "figure" }))),
    h("td", { class: "version figure" }, h("b"), h("span", { class: "since" })),
    h("td", { class: "endpoint" }),
    h("td", { class: "age figure" }, age(service.created_at)),
  );
}

// Where a rollout goes on: from which version to which, and how many replicas of the new one are ready.
function drawVersion(node, { service, replicas, rollout }) {
  const moving = rollout && rollout.to_version === service.version;
  const from = moving && rollout.from_version ? `v${rollout.from_version} → ` : "";
  setText(node.querySelector("b"), service.version === null ? "" : `${from}v${service.version}`);
  const ready = replicas.filter((each) => moving && each.version === rollout.to_version && each.state === "READY").length;
  const how = moving ? `${rollout.paused_at ? "paused, " : ""}${ready} / ${service.target} ready` : "";
  setText(node.querySelector("span"), how);
}

function update(node, card, before) {
  const { service, replicas } = card;
  setBadge(node.querySelector(".badge"), service.status);
  const reason = node.querySelector(".reason bdi");
  setText(reason, sentence(service.reason));
  setAttribute(reason, "title", service.reason);
  drawCells(node.querySelector(".cells"), service, replicas);
  setText(node.querySelector(".ready .figure"), `${service.ready} / ${wanted(service)}`);
  drawVersion(node.querySelector(".version"), card);
  setAge(node.querySelector("time"), service.created_at);
  if (!before || before.service.endpoint !== service.endpoint)
    node.querySelector(".endpoint").replaceChildren(service.endpoint ? addressLink(service.endpoint) : "");
}

function draw() {
  const all = state.list();
  document.getElementById("services").classList.toggle("no-endpoints", !all.some(({ service }) => service.endpoint));
  const text = search.value.trim().toLowerCase();
  const shown = text ? all.filter(({ service }) => matches(service, text)) : all;
  keyed(body, shown, ({ service }) => service.id, row, update);
  show(document.getElementById("empty"), all.length === 0);
  show(document.getElementById("listing"), all.length > 0);
  show(document.getElementById("nothing"), all.length > 0 && shown.length === 0);
  setText(document.getElementById("count"), text ? `${shown.length} of ${all.length}` : String(all.length));
  const trouble = all.filter(({ service }) => inTrouble(service)).length;
  setTitle(trouble ? `${trouble} in trouble · Services` : "Services", trouble > 0);
}

const matches = (service, text) =>
  [service.name, service.status, service.reason].some((part) => part.toLowerCase().includes(text));

const { redraw } = live({ state, url: page.url, draw });

search.addEventListener("input", () => {
  const address = new URL(location.href);
  if (search.value) address.searchParams.set("q", search.value);
  else address.searchParams.delete("q");
  history.replaceState(null, "", address);
  redraw();
});
search.form.addEventListener("submit", (submit) => submit.preventDefault());
