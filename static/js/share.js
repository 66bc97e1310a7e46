// What one replica has of its service's traffic, what it uses, and what machine it is, as words.

import { setAttribute, setText } from "./dom.js";
import { bytes } from "./words.js";

const few = (value) => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10);

/** `{rate, in_flight, failed}` in a line of `node`; nothing where it was not measured. */
export function drawShare(node, share) {
  const failed = share?.failed ? ` · ${share.failed} failed` : "";
  setText(node, share ? `${few(share.rate)}/s · ${share.in_flight} in flight${failed}` : "");
  setAttribute(node, "data-tone", failed ? "bad" : null);
  setAttribute(node, "title", share ? "Requests per second, requests now, and failures in the last minute" : null);
}

/** What replicas use: CPU is seconds so far in each answer, and a share only between two. */
export class Meter {
  #before = null;
  #now = null;

  /** `{at, replicas: {number: [CPU seconds, bytes of memory]}}`, newer than the one before. */
  take(usage) {
    if (usage.at === this.#now?.at) return;
    this.#before = this.#now;
    this.#now = usage;
  }

  /** `{cpu, memory}`: share of a core (null until it is known) and bytes; null where nothing is measured. */
  of(number) {
    const now = this.#now?.replicas[number];
    if (!now) return null;
    const before = this.#before?.replicas[number];
    const seconds = before ? this.#now.at - this.#before.at : 0;
    return { cpu: seconds > 0 && now[0] >= before[0] ? (now[0] - before[0]) / seconds : null, memory: now[1] };
  }
}

/** `{cpu, memory}` as the two lines of `node`; nothing where it was not measured. */
export function drawUsed(node, used, apart = "") {
  setText(node.firstChild, used && used.cpu !== null ? `${few(used.cpu * 100)} %${apart}` : "");
  setText(node.lastChild, used ? bytes(used.memory) : "");
  setAttribute(node, "title", used ? "CPU of one core since the last look, and memory, of all its processes" : null);
}

/** spot A100:8 aws/us-east-1; "" where its provider says nothing of it. */
export function machine(replica) {
  const kind = replica.spot === null ? "" : replica.spot ? "spot" : "on demand";
  return [kind, replica.accelerators ?? "", replica.place ?? ""].filter(Boolean).join(" ");
}
