// The page of notices: how each channel does, and what became of the latest notices; asked for each few seconds.

import { bdi, h, keyed, pageData, setAttribute, setText, show } from "./dom.js";
import { setTitle } from "./live.js";
import { poll } from "./poll.js";
import { age, clockText, setNow } from "./time.js";
import { badge, count, setBadge } from "./words.js";

const page = pageData();
const at = (id) => document.getElementById(id);
const EVERY = 3000;
let heard = Date.now();

function draw({ now, channels, notices }) {
  setNow(now);
  for (const channel of channels) drawChannel(channel);
  show(at("sent-part"), notices.length > 0);
  keyed(document.querySelector("#sent tbody"), notices, (notice) => notice.id, row, update);
  const ill = channels.filter((channel) => channel.enabled && channel.last_error);
  setTitle(ill.length ? `${count(ill.length, "channel")} in trouble · Notices` : "Notices", ill.length > 0);
}

function drawChannel(channel) {
  const node = document.querySelector(`[data-channel="${channel.id}"]`);
  if (!node) return; // made since: a reload shows it
  const state = channel.last_error ? "FAILED" : "ON";
  setBadge(node.querySelector(".badge"), channel.enabled ? state : "OFF");
  setText(node.querySelector("[data-error]"), channel.last_error);
  const sent = node.querySelector("[data-sent]");
  if (sent.dataset.at === (channel.sent_at ?? "")) return;
  sent.dataset.at = channel.sent_at ?? "";
  if (channel.sent_at) sent.replaceChildren(age(channel.sent_at), " ago");
  else setText(sent, "never");
}

function row(notice) {
  return h(
    "tr",
    {},
    h("td", { "data-label": "When" }, age(notice.created_at), " ago"),
    h("td", { "data-label": "Channel" }, bdi(notice.channel)),
    h("td", { "data-label": "Notice" }, h("b", {}, bdi(notice.title)), h("p", { class: "told muted" }, bdi(notice.text))),
    h("td", { "data-label": "State" }, badge(""), " ", bdi("", { class: "muted" })),
  );
}

function update(node, notice) {
  setBadge(node.lastChild.querySelector(".badge"), notice.state);
  const tries = notice.attempts > 1 ? `${notice.attempts} attempts` : "";
  setText(node.lastChild.querySelector("bdi"), [notice.error, tries].filter(Boolean).join("; "));
}

function showConnection(lost) {
  const node = at("connection");
  setAttribute(node, "data-state", lost ? "lost" : "live");
  const when = clockText(new Date(heard).toISOString());
  setText(node.querySelector("[data-text]"), lost ? `No answer since ${when}` : "Live");
  node.title = lost ? `What you see is as of ${when}.` : "Asked each 3 seconds.";
}

draw(page.snapshot);
showConnection(false);
const ask = poll(
  page.url,
  EVERY,
  (state) => {
    heard = Date.now();
    showConnection(false);
    draw(state);
  },
  () => showConnection(true),
);
document.addEventListener("acted", ask);
