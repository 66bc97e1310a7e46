// The page of all operations.

import { bdi, fill, h, keyed, pageData, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { liveOperation, OperationsState } from "./state.js";
import { age, fineDuration, setAge, setNow } from "./time.js";
import { operationButtons } from "./timeline.js";
import { badge, bytes, sentence, setBadge } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new OperationsState(page);
const at = (id) => document.getElementById(id);

function row(operation) {
  const service = state.services.get(operation.service_id) ?? "";
  return h(
    "tr",
    { data: { row: operation.id } },
    h("td", { class: "number figure" }, `${operation.id}`),
    h(
      "td",
      { class: "thing" },
      operation.kind === "LAUNCH" ? "Launch of " : "Down of ",
      h("a", { href: paths.replica(service, operation.number), data: { main: "" } }, bdi(service), ` #${operation.number}`),
    ),
    h("td", { class: "status" }, badge(operation.status)),
    h("td", { class: "why" }, h("bdi", { class: "clamp" })),
    h("td", { class: "lane", data: { label: "lane" } }, operation.lane),
    h("td", { class: "attempt figure", data: { label: "attempts" } }),
    h("td", { class: "took figure", data: { label: "took" } }),
    h("td", { class: "age figure", data: { label: "age" } }, age(operation.created_at)),
    page.can.operate ? h("td", { class: "do" }) : null,
  );
}

function update(node, operation) {
  setBadge(node.querySelector(".badge"), operation.status);
  const why = node.querySelector(".why bdi");
  const waits = operation.waits_for ? `Waits for: ${operation.waits_for}` : "";
  setText(why, sentence(waits || operation.error || operation.reason));
  why.title = [operation.reason, waits, operation.error].filter(Boolean).join("\n");
  why.classList.toggle("error", !waits && operation.error !== "");
  setText(node.querySelector(".attempt"), String(operation.attempts));
  setText(node.querySelector(".took"), took(operation));
  setAge(node.querySelector(".age time"), operation.ended_at ?? operation.created_at);
  const cell = node.querySelector(".do");
  if (cell) fill(cell, operationButtons(operation));
}

function took(operation) {
  if (!operation.started_at || !operation.ended_at) return "";
  const time = fineDuration(Date.parse(operation.ended_at) - Date.parse(operation.started_at));
  return operation.peak_memory ? `${time}, ${bytes(operation.peak_memory)}` : time;
}

function draw() {
  const going = state.live();
  const past = state.history();
  keyed(document.querySelector("#live tbody"), going, (operation) => operation.id, row, update);
  keyed(document.querySelector("#past tbody"), past, (operation) => operation.id, row, update);
  show(at("idle"), going.length === 0);
  show(at("live"), going.length > 0);
  show(at("past-part"), past.length > 0);
  setText(at("live-count"), String(going.length));
  const lanes = going.filter(liveOperation).reduce((sums, each) => sums.set(each.lane, (sums.get(each.lane) ?? 0) + 1), new Map());
  setText(at("lanes"), [...lanes].map(([lane, number]) => `${lane}: ${number}`).join(" · "));
  setTitle(going.length ? `${going.length} in flight · Operations` : "Operations", false);
}

live({ state, url: page.url, draw });
