// The page of all services.

import { bulk } from "./bulk.js";
import { bdi, fill, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { poll } from "./poll.js";
import { Selection } from "./selection.js";
import { setSpark, spark } from "./spark.js";
import { matches, ServicesState } from "./state.js";
import { age, setAge, setNow } from "./time.js";
import { addressLink, badge, calm, copyButton, drawCells, sentence, setBadge, tone, wanted } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new ServicesState(page.snapshot);
const at = (id) => document.getElementById(id);
const table = at("services");
const body = table.querySelector("tbody");
const filters = at("filters");
const FIELDS = ["q", "status", "provider", "owner", "sort"];
const TYPING = 200;
const FIGURES_EVERY = 5000;
const chosen = { ...page.snapshot.wanted };
const severity = new Map(page.severity.map((status, place) => [status, place]));
const byName = (a, b) => (a.service.name < b.service.name ? -1 : a.service.name > b.service.name ? 1 : 0);
const keys = {
  name: () => 0,
  status: ({ service }) => severity.get(service.status) ?? severity.size,
  ready: ({ service }) => service.ready / Math.max(service.target, 1),
  version: ({ service }) => service.version ?? 0,
  age: ({ service }) => -Date.parse(service.created_at),
};

// What the address says: the filters that are set and, beyond the first, the page.
function query(more = {}) {
  const found = new URLSearchParams();
  for (const field of FIELDS) if (chosen[field] && !(field === "sort" && chosen.sort === "name")) found.set(field, chosen[field]);
  for (const [name, value] of Object.entries(more)) found.set(name, value);
  const text = found.toString();
  return text ? `?${text}` : "";
}

const onPage = (number) => query(number > 1 ? { page: number } : {});

const selection = page.can.operate ? new Selection({ body, all: at("tick-all"), changed: () => drawBulk() }) : null;

// Of others only who may act on any service; the server asks again.
const mayActOn = (service) => page.can.any || service.owner === null || service.owner === page.can.user;

function row({ service }) {
  return h(
    "tr",
    { data: { row: service.name } },
    selection?.cell(service.name, service.name, mayActOn(service)),
    h(
      "td",
      { class: "name" },
      h("a", { href: paths.service(service.name), data: { main: "" }, title: service.name }, bdi(service.name)),
      h("div", { class: "reason" }, bdi("")),
    ),
    h("td", { class: "status" }, badge(service.status)),
    h("td", { class: "ready" }, h("div", {}, h("span", { class: "cells" }), h("span", { class: "figure" }))),
    h("td", { class: "version figure" }, h("b"), h("span", { class: "since" })),
    h("td", { class: "load" }, load("rate"), load("flight")),
    h("td", { class: "endpoint" }),
    h("td", { class: "owner" }, bdi("")),
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
  setText(node.querySelector(".owner bdi"), service.owner ?? "");
  if (!before || before.service.endpoint !== service.endpoint)
    fill(node.querySelector(".endpoint"), service.endpoint ? [addressLink(service.endpoint), copyButton(service.endpoint, "Copy the endpoint")] : null);
}

const load = (what) => h("div", { data: { load: what } }, spark(), h("span", { class: "figure" }));
let figures = {};

function drawLoad() {
  const known = Object.values(figures).some((line) => line.rate !== null);
  table.classList.toggle("no-load", !known);
  for (const node of body.children) {
    const line = figures[node.dataset.row];
    if (!line) continue;
    const rate = line.rate === null ? "" : `${short(line.rate)} req/s`;
    const flight = line.in_flight === null ? "" : `${short(line.in_flight)} in flight${line.queued ? `, ${short(line.queued)} wait` : ""}`;
    for (const [what, values, text] of [["rate", line.rates, rate], ["flight", line.in_flights, flight]]) {
      const part = node.querySelector(`[data-load=${what}]`);
      setSpark(part.firstChild, values, { label: `${text || "not measured"}, and the ten minutes before` });
      setText(part.lastChild, text);
    }
  }
}

const short = (number) => (number < 10 ? Number(number.toFixed(1)) : Math.round(number)).toLocaleString();

function sorted(cards) {
  const key = keys[chosen.sort.replace("-", "")] ?? keys.name;
  const sign = chosen.sort.startsWith("-") ? -1 : 1;
  const byKey = chosen.sort.endsWith("name") ? (a, b) => sign * byName(a, b) : (a, b) => sign * (key(a) - key(b)) || byName(a, b);
  return [...cards].sort(byKey);
}

function draw() {
  const all = state.index.byId.size;
  const cards = sorted(state.list().filter(({ service }) => !state.whole || matches(chosen, service)));
  table.classList.toggle("no-endpoints", !cards.some(({ service }) => service.endpoint));
  table.classList.toggle("no-owners", !cards.some(({ service }) => service.owner));
  calm(cards.reduce((all, { replicas }) => all + replicas.length, 0));
  keyed(body, cards, ({ service }) => service.id, row, update);
  drawLoad();
  selection?.keep(cards.filter(({ service }) => mayActOn(service)).map(({ service }) => service.name));
  show(at("empty"), all === 0);
  show(filters, all > 0);
  show(at("listing"), all > 0);
  show(table, cards.length > 0);
  show(at("nothing"), all > 0 && cards.length === 0);
  const matched = state.whole ? cards.length : state.matched;
  const filtered = chosen.q || chosen.status || chosen.provider || chosen.owner;
  setText(at("count"), filtered ? `${matched} of ${all}` : String(all));
  drawFilters(Boolean(filtered));
  drawNews();
  drawPages();
  drawBulk();
}

function head() {
  const trouble = troubled(state.statuses());
  setTitle(trouble ? `${trouble} in trouble · Services` : "Services", trouble > 0);
}

const isTrouble = (status) => tone(status) === "bad" || status === "NOT_READY";
const troubled = (statuses) => [...statuses].reduce((sum, [status, number]) => sum + (isTrouble(status) ? number : 0), 0);

function drawFilters(filtered) {
  const statuses = state.statuses();
  const offers = [...statuses].sort(([a], [b]) => severity.get(a) - severity.get(b)).map(([status, number]) => [status, `${status} (${number})`]);
  if (chosen.status && chosen.status !== "trouble" && !statuses.has(chosen.status)) offers.push([chosen.status, `${chosen.status} (0)`]);
  options(filters.elements.status, [["", "Any status"], ["trouble", `FAILED or NOT_READY (${troubled(statuses)})`], ...offers], chosen.status);
  const words = (found, kept) => [...new Set([...found, ...(kept ? [kept] : [])])].map((word) => [word, word]);
  const providers = words(state.providers, chosen.provider);
  options(filters.elements.provider, [["", "Any provider"], ...providers], chosen.provider);
  show(filters.elements.provider, providers.length > 1 || chosen.provider !== "");
  const owners = words(state.owners, chosen.owner).map(([word]) => [word, word === page.can.user ? `${word} (you)` : word]);
  options(filters.elements.owner, [["", "Any owner"], ...owners], chosen.owner);
  show(filters.elements.owner, owners.length > 0);
  if (filters.elements.sort.value !== chosen.sort) filters.elements.sort.value = chosen.sort;
  show(filters.querySelector("[type=reset]"), filtered);
  for (const head of table.querySelectorAll("[data-sort]")) {
    const by = chosen.sort.replace("-", "") === head.dataset.sort;
    setAttribute(head, "aria-sort", by ? (chosen.sort.startsWith("-") ? "descending" : "ascending") : null);
  }
}

const offered = new WeakMap();
function options(select, list, value) {
  const key = JSON.stringify(list);
  if (offered.get(select) !== key) {
    offered.set(select, key);
    fill(select, list.map(([word, text]) => h("option", { value: word }, text)));
    select.value = value;
  } else if (select.value !== value) select.value = value;
}

function drawNews() {
  const { come, changed, gone } = state.news;
  const parts = [come.size ? `${come.size} new` : "", changed.size ? `${changed.size} changed` : "", gone.size ? `${gone.size} gone` : ""];
  const text = parts.filter(Boolean).join(", ");
  show(at("news"), text !== "");
  setText(at("news").firstElementChild, text && `On other pages: ${text}.`);
}

function drawPages() {
  const nav = at("pages");
  const { page: number } = state.wanted;
  show(nav, !state.whole);
  setText(nav.querySelector("span"), `Page ${number} of ${state.pages}`);
  const [previous, next] = nav.querySelectorAll("a");
  setAttribute(previous, "href", number > 1 ? onPage(number - 1) || location.pathname : null);
  setAttribute(next, "href", number < state.pages ? onPage(number + 1) : null);
}

function drawBulk() {
  if (!selection) return;
  const chosenNames = selection.chosen();
  drawBar(chosenNames.length);
  const more = !state.whole && chosenNames.length > 0 && selection.full && chosenNames.length < state.matched;
  show(at("select-all"), more);
  setText(at("select-all"), `Select all ${state.matched} that match`);
}

async function selectAll() {
  const response = await fetch(`${paths.names()}${query()}`, { headers: { Accept: "application/json" } }).catch(() => null);
  if (response?.ok) selection.choose((await response.json()).names);
}

const drawBar = selection
  ? bulk({
      selection,
      deeds: {
        restart: { word: "Restart", what: "A new version with the same text replaces every replica of each, a few at a time.", look: "primary" },
        scale: { word: "Scale", what: "New replicas are launched, or the least useful ones are drained and taken down.", look: "primary" },
        down: { word: "Take down", what: "Every replica of each is drained and taken down. Versions and history stay.", look: "danger" },
      },
      noun: "service",
      field: "names",
      chosen: () => selection.chosen().map((name) => [name, name]),
    })
  : null;

function choose(fields) {
  if (Object.entries(fields).every(([field, value]) => chosen[field] === value)) return;
  Object.assign(chosen, fields);
  history.replaceState(null, "", query() || location.pathname);
  redraw();
  reload();
}

// Another filter or order begins with its first page.
const moved = () => FIELDS.some((field) => chosen[field] !== state.wanted[field]);
const { redraw, reload } = live({ state, url: () => page.url + (moved() ? query() : onPage(state.wanted.page)), draw, head });

poll(page.figures, FIGURES_EVERY, (found) => {
  figures = found.services;
  drawLoad();
});

let typing = 0;
filters.elements.q.value = chosen.q;
filters.addEventListener("input", (input) => {
  if (input.target.name !== "q") return choose({ [input.target.name]: input.target.value });
  clearTimeout(typing);
  typing = setTimeout(() => choose({ q: input.target.value.trim() }), TYPING);
});
filters.addEventListener("submit", (submit) => submit.preventDefault());
filters.addEventListener("reset", (reset) => {
  reset.preventDefault();
  filters.elements.q.value = "";
  clearTimeout(typing);
  choose({ q: "", status: "", provider: "", owner: "" });
});
table.tHead.addEventListener("click", (click) => {
  const by = click.target.closest("[data-sort]")?.dataset.sort;
  if (by && click.target.closest("button")) choose({ sort: chosen.sort === by ? `-${by}` : by });
});
at("news").querySelector("button").addEventListener("click", reload);
if (selection) at("select-all").addEventListener("click", selectAll);
