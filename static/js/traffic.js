// The traffic of a service on its page: plots with one crosshair, a range to choose, the autoscaler's decisions; live
// while somebody looks.

import { bdi, h, keyed, setAttribute, setText, show } from "./dom.js";
import { History } from "./history.js";
import * as paths from "./paths.js";
import { Plot } from "./plot.js";
import { Meter } from "./share.js";
import { age, clockText, exactText, fineDuration, minuteText, now as serverNow, setNow } from "./time.js";
import { sentence } from "./words.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = { 300: 1, 900: 3, 3600: 10, 21600: 60, 86400: 300, 604800: 1800 }; // seconds; some 300 of each range
const TICKS = { 300: MINUTE, 900: 5 * MINUTE, 3600: 15 * MINUTE, 21600: 2 * HOUR, 86400: 6 * HOUR, 604800: 2 * DAY };
const EDGE = 0.09; // of the width: a label nearer to an end would stand beside its plot
const USUAL = "900";
const LEAST_PAUSE = 2000;
const MOST_PAUSE = 30_000;
const SOON = 500; // an event that the plots show is there before the next look is due
const KEPT = "rollcall-range";
const days = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const at = (id) => document.getElementById(id);

const rate = (value) => (value >= 1000 ? `${round(value / 1000)}k` : String(round(value)));
const round = (value) => (value >= 100 ? Math.round(value) : Number(value.toFixed(value >= 10 ? 1 : 2)));

function makePlots() {
  return [
    new Plot({
      id: "requests",
      title: "Requests/s",
      stack: true,
      format: rate,
      series: [
        ...["2xx", "3xx", "4xx", "5xx"].map((name) => ({ name, label: name, area: true })),
        { name: "1xx", label: "1xx", area: true, optional: true },
        { name: "asked", label: "came in", hint: "All requests that came in, also those that got no answer" },
      ],
    }),
    new Plot({
      id: "latency",
      title: "Latency",
      least: 10,
      format: fineDuration,
      series: ["p99", "p95", "p50"].map((name) => ({ name, label: name })),
    }),
    new Plot({
      id: "load",
      title: "At work",
      format: rate,
      series: [
        { name: "in_flight", label: "in flight", hint: "Requests that a replica is at" },
        { name: "queued", label: "waiting", hint: "Requests that no replica has taken yet" },
      ],
    }),
    new Plot({
      id: "replicas",
      title: "Replicas",
      format: rate,
      least: 2,
      whole: true,
      series: [
        { name: "ready", label: "ready", area: true },
        { name: "wanted", label: "wanted", hint: "How many replicas there are to be" },
      ],
    }),
  ];
}

/**
 * The section `#traffic` of the page of the service `name`; `state` is its ServiceState. `shares` is what each replica
 * has of it, by number: `{rate, in_flight, failed}`, `meter` tells what each uses; `measured()` is called when that is
 * news.
 */
export class Traffic {
  constructor(name, state, measured) {
    this.name = name;
    this.state = state;
    this.measured = measured;
    this.shares = {};
    this.meter = new Meter();
    this.plots = makePlots();
    this.share = null; // where the crosshair is, of the width
    this.timer = 0;
    this.asked = 0; // the newest request; answers to older ones are for another range
    at("plots").append(...this.plots.map((plot) => plot.node));
    this.choose(localStorage.getItem(KEPT) ?? USUAL);
    this.#listen();
    this.draw();
  }

  /** Begin to look; `feed` tells of events that the plots show, and whether the server is there. */
  start(feed) {
    this.feed = feed;
    feed.addEventListener("batch", ({ detail }) => {
      if (detail.some((event) => event.kind === "service" || event.kind === "decision")) this.#later(SOON);
    });
    feed.addEventListener("state", () => this.#later(SOON));
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stop() : this.look()));
    this.look();
  }

  /** Show another range, in seconds. */
  choose(range) {
    const length = range in STEPS ? range : USUAL;
    this.history = new History(Number(length), STEPS[length]);
    this.share = null;
    for (const button of at("ranges").children) setAttribute(button, "aria-pressed", String(button.dataset.range === length));
  }

  get pause() {
    return Math.min(Math.max(this.history.step * 1000, LEAST_PAUSE), MOST_PAUSE);
  }

  /** Ask for what is new, and again after a while. */
  async look() {
    this.#stop();
    if (document.hidden || this.state.forgotten) return;
    const mine = ++this.asked;
    const { history } = this;
    const answer = ["live", "connecting"].includes(this.feed.state) ? await fetchJson(paths.samples(this.name, history.query)) : null;
    if (mine !== this.asked || document.hidden) return;
    if (answer) {
      setNow(answer.now);
      history.take(answer);
      this.shares = answer.replicas;
      this.meter.take(answer.usage);
      this.measured();
      this.draw();
    }
    this.#later(this.pause);
  }

  // Sooner than what is planned, never later: many events are one look.
  #later(wait) {
    const due = Date.now() + wait;
    if (document.hidden || (this.timer && this.due <= due)) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => this.look(), wait);
  }

  #stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  #listen() {
    at("ranges").addEventListener("click", (click) => {
      const range = click.target.closest("button")?.dataset.range;
      if (!range) return;
      localStorage.setItem(KEPT, range);
      this.choose(range);
      this.draw();
      this.look();
    });
    const point = (move) => {
      const area = move.target.closest(".plot")?.querySelector(".plot-area");
      if (area) this.#point((move.clientX - area.getBoundingClientRect().left) / area.clientWidth);
    };
    at("plots").addEventListener("pointermove", point);
    at("plots").addEventListener("pointerdown", point);
    at("plots").addEventListener("pointerleave", () => this.#point(null));
    at("plots").addEventListener("blur", () => this.#point(null));
    at("plots").addEventListener("keydown", (key) => this.#key(key));
  }

  // A hundredth of the range, or a tenth; from the newest end.
  #key(key) {
    const by = { ArrowLeft: -0.01, ArrowRight: 0.01, PageUp: -0.1, PageDown: 0.1 }[key.key];
    if (key.key === "Escape") this.#point(null);
    else if (key.key === "Home" || key.key === "End") this.#point(key.key === "Home" ? 0 : 1);
    else if (by) this.#point((this.share ?? 1) + by);
    else return;
    key.preventDefault();
  }

  #point(share) {
    this.share = share === null ? null : Math.min(Math.max(share, 0), 1);
    this.read();
  }

  /** Draw everything anew. */
  draw() {
    const to = this.history.now || serverNow();
    const from = to - this.history.range * 1000;
    const view = { from, to, ticks: ticks(from, to, this.history.range) };
    for (const plot of this.plots) plot.draw(this.history, plot.id === "replicas" ? { ...view, marks: this.history.decisions } : view);
    this.from = from;
    this.to = to;
    this.read();
    setText(at("plot-summary"), this.plots.map((plot) => plot.words).join(" "));
    drawDecisions(this.history.decisions);
  }

  /** Show the figures under the crosshair, or those of now. */
  read() {
    const { share, from, to } = this;
    const time = share === null ? null : from + share * (to - from);
    for (const plot of this.plots) plot.read(time, share);
    const iso = time === null ? null : new Date(time).toISOString();
    setText(at("plot-time"), iso === null ? "now" : to - from > HOUR ? exactText(iso) : clockText(iso));
    const decision = time === null ? null : this.history.decisionAt(time, (to - from) / 60);
    const note = decision ? `Autoscaler, ${clockText(decision.at)}: ${decision.reason}` : this.#why();
    setText(at("plot-note"), sentence(note));
    at("plot-note").title = note;
  }

  // Why nothing is measured, or what the autoscaler decided last.
  #why() {
    const { service } = this.state;
    if (service.desired === "UP" && !service.endpoint)
      return `Its traffic is not measured: it has no endpoint${service.endpoint_reason ? `, because ${service.endpoint_reason}` : ""}`;
    const last = this.history.decisions.at(-1);
    if (last) return `Autoscaler, ${clockText(last.at)}: ${last.reason}`;
    return this.history.cursor !== null && this.history.items.length === 0 ? "Its traffic was not measured in this time" : "";
  }
}

async function fetchJson(address) {
  const response = await fetch(address, { headers: { Accept: "application/json" }, cache: "no-store" }).catch(() => null);
  return response?.ok ? response.json() : null;
}

// Round times of the reader's zone.
function ticks(from, to, range) {
  const space = TICKS[range];
  const zone = new Date(to).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let time = Math.ceil((from - zone) / space) * space + zone; time <= to; time += space) {
    const label = range > DAY / 1000 ? days.format(new Date(time)) : minuteText(time);
    if (Math.min(time - from, to - time) > (to - from) * EDGE) found.push({ at: time, label });
  }
  return found;
}

function drawDecisions(decisions) {
  keyed(at("decision-list"), [...decisions].reverse(), (decision) => decision.id, entry);
  setText(at("decision-count"), String(decisions.length));
  if (decisions.length > 0) show(at("decisions"), true); // of a version before, or after, the one that the page began with
}

function entry(decision) {
  return h(
    "li",
    { data: { way: decision.target > decision.from ? "up" : "down", decision: decision.id } },
    h("b", { class: "figure" }, `${decision.from} → ${decision.target}`),
    h("span", {}, bdi(sentence(decision.reason)), " ", h("span", { class: "muted inputs" }, inputs(decision.inputs))),
    age(decision.at),
  );
}

const INPUTS = {
  qps: (value) => `${rate(value)} requests/s`,
  inflight: (value) => `${rate(value)} in flight`,
  queued: (value) => `${rate(value)} waiting`,
  p95: (value) => `p95 ${fineDuration(value * 1000)}`,
  custom: (value) => `own number ${rate(value)}`,
  load: (value) => `fills ${rate(value)} replicas over 60 s`,
  load_short: (value) => `${rate(value)} over 6 s`,
};

/** The figures that a decision was made from, as words. */
function inputs(figures) {
  const told = Object.entries(figures).filter(([name, value]) => name in INPUTS && value !== null);
  return told.map(([name, value]) => INPUTS[name](value)).join(" · ");
}
