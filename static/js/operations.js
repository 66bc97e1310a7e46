// The page of all operations.

import { bulk } from "./bulk.js";
import { bdi, fill, h, keyed, pageData, setText, show } from "./dom.js";
import { live, setTitle } from "./live.js";
import * as paths from "./paths.js";
import { Selection } from "./selection.js";
import { liveOperation, OperationsState } from "./state.js";
import { age, fineDuration, setAge, setNow } from "./time.js";
import { operationButtons } from "./timeline.js";
import { badge, bytes, calm, count, sentence, setBadge } from "./words.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new OperationsState(page);
const at = (id) => document.getElementById(id);
const search = document.querySelector("[data-search]");
const going = document.querySelector("#live tbody");
const selection = page.can.operate ? new Selection({ body: going, all: at("tick-all"), changed: () => drawBulk() }) : null;
const ORDER = ["RUNNING", "WAITING", "QUEUED", "CANCELLING"];
search.value = new URLSearchParams(location.search).get("q") ?? "";

const serviceOf = (operation) => state.services.get(operation.service_id) ?? "";
const nameOf = (operation) => `${operation.kind === "LAUNCH" ? "launch" : "down"} of ${serviceOf(operation)} #${operation.number}`;
const mayCancel = (operation) => operation.kind === "LAUNCH" && liveOperation(operation) && operation.status !== "CANCELLING";
const mayRetry = (operation) => operation.status === "WAITING";

function row(operation) {
  const service = serviceOf(operation);
  const alive = liveOperation(operation);
  return h(
    "tr",
    { data: { row: operation.id } },
    alive ? selection?.cell(operation.id, nameOf(operation)) : null,
    h("td", { class: "number figure" }, `${operation.id}`),
    h(
      "td",
      { class: "thing" },
      operation.kind === "LAUNCH" ? "Launch of " : "Down of ",
      h("a", { href: paths.replica(service, operation.number), data: { main: "" } }, bdi(service), ` #${operation.number}`),
    ),
    h("td", { class: "status" }, badge(operation.status)),
    h("td", { class: "why" }, h("bdi", { class: "clamp" })),
    h("td", { class: "lane", data: { label: "lane" } }, operation.lane, h("span", { class: "since" })),
    h("td", { class: "attempt figure", data: { label: "attempts" } }),
    h("td", { class: "took figure", data: { label: "took" } }),
    h("td", { class: "memory figure", data: { label: "memory" } }),
    h("td", { class: "age figure", data: { label: "age" } }, age(operation.created_at)),
    h("td", { class: "do" }, h("a", { class: "log-link", href: logOf(operation, service) }, "Log"), h("span", {})),
  );
}

// A launch's log is on its replica's page; that of a down has none, and is had whole.
const logOf = (operation, service) =>
  operation.kind === "LAUNCH" ? `${paths.replica(service, operation.number)}#launch` : paths.operationLog(operation.id);

function update(node, operation) {
  setBadge(node.querySelector(".badge"), operation.status);
  const why = node.querySelector(".why bdi");
  const waits = operation.waits_for ? `Waits for: ${operation.waits_for}` : "";
  setText(why, sentence(waits || operation.error || operation.cancel_reason || operation.reason));
  why.title = [operation.reason, waits, operation.error, operation.cancel_reason].filter(Boolean).join("\n");
  why.classList.toggle("error", !waits && operation.error !== "");
  setText(node.querySelector(".lane .since"), operation.worker ?? "");
  setText(node.querySelector(".attempt"), String(operation.attempts));
  drawTook(node.querySelector(".took"), operation);
  setText(node.querySelector(".memory"), operation.peak_memory ? bytes(operation.peak_memory) : "");
  setAge(node.querySelector(".age time"), operation.ended_at ?? operation.created_at);
  if (page.can.operate) fill(node.querySelector(".do span"), operationButtons(operation));
}

// From the first step to the end, or until now.
function drawTook(cell, { started_at: from, ended_at: to }) {
  if (!from) fill(cell);
  else if (to) setText(cell, fineDuration(Date.parse(to) - Date.parse(from)));
  else if (!cell.firstElementChild) fill(cell, age(from));
}

function drawLanes(all) {
  const counted = (lane, status) => all.filter((each) => each.lane === lane && each.status === status).length;
  keyed(
    at("lanes"),
    Object.entries(page.lanes),
    ([lane]) => lane,
    ([lane, workers]) => h("li", { class: "lane-card" }, h("b", {}, lane), h("span", { class: "muted" }, ` ${count(workers, "worker")} `), h("span", { class: "lane-counts" })),
  );
  [...at("lanes").children].forEach((node, place) => {
    const [lane] = Object.entries(page.lanes)[place];
    const parts = ORDER.map((status) => [status, counted(lane, status)]).filter(([, number]) => number > 0);
    setText(node.lastChild, parts.length ? parts.map(([status, number]) => `${number} ${status.toLowerCase()}`).join(", ") : "idle");
  });
}

const matching = (operation) => {
  const text = search.value.trim().toLowerCase();
  const said = [nameOf(operation), operation.status, operation.reason, operation.waits_for, operation.error, operation.cancel_reason, operation.worker ?? ""];
  return text === "" || said.some((part) => part.toLowerCase().includes(text));
};

function draw() {
  const all = state.live();
  const shown = all.filter(matching);
  calm(shown.length);
  const past = state.history();
  const old = past.filter(matching);
  keyed(going, shown, (operation) => operation.id, row, update);
  keyed(document.querySelector("#past tbody"), old, (operation) => operation.id, row, update);
  selection?.keep(shown.map((operation) => operation.id));
  show(at("idle"), all.length === 0);
  show(at("live"), shown.length > 0);
  show(at("past-part"), past.length > 0);
  setText(at("live-count"), shown.length < all.length ? `${shown.length} of ${all.length}` : String(all.length));
  setText(at("past-count"), old.length < past.length ? `${old.length} of ${past.length}` : "");
  drawLanes(all);
  drawBulk();
}

function head() {
  const all = state.live().length;
  setTitle(all ? `${all} in flight · Operations` : "Operations", false);
}

const ticked = () => state.live().filter((operation) => selection.chosen().includes(String(operation.id)));
const ABLE = { cancel: mayCancel, retry: mayRetry };
const them = (word) => (number) => `${word} ${number === 1 ? "it" : "them"}`;
const drawBar = selection
  ? bulk({
      selection,
      deeds: {
        cancel: { word: "Cancel", what: "What was launched so far is taken down. While a service wants as many replicas as now, other launches follow.", look: "danger", again: them("Cancel") },
        retry: { word: "Retry", what: "They do not wait for their time any longer.", look: "primary", again: them("Retry") },
      },
      noun: "operation",
      field: "ids",
      chosen: (verb) => ticked().filter(ABLE[verb]).map((each) => [nameOf(each), each.id]),
    })
  : null;

function drawBulk() {
  if (!selection) return;
  const chosen = ticked();
  drawBar(chosen.length);
  for (const button of at("bulk").querySelectorAll("[data-bulk]")) button.disabled = !chosen.some(ABLE[button.dataset.bulk]);
}

const { redraw } = live({ state, url: page.url, draw, head });

search.addEventListener("input", () => {
  const address = new URL(location.href);
  if (search.value) address.searchParams.set("q", search.value);
  else address.searchParams.delete("q");
  history.replaceState(null, "", address);
  redraw();
});
search.form.addEventListener("submit", (submit) => submit.preventDefault());
