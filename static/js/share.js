// What one replica has of its service's traffic, and what machine it is, as words.

import { setAttribute, setText } from "./dom.js";

const few = (value) => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10);

/** `{rate, in_flight, failed}` in a line of `node`; nothing where it was not measured. */
export function drawShare(node, share) {
  const failed = share?.failed ? ` · ${share.failed} failed` : "";
  setText(node, share ? `${few(share.rate)}/s · ${share.in_flight} in flight${failed}` : "");
  setAttribute(node, "data-tone", failed ? "bad" : null);
  setAttribute(node, "title", share ? "Requests per second, requests now, and failures in the last minute" : null);
}

/** spot A100:8 aws/us-east-1; "" where its provider says nothing of it. */
export function machine(replica) {
  const kind = replica.spot === null ? "" : replica.spot ? "spot" : "on demand";
  return [kind, replica.accelerators ?? "", replica.place ?? ""].filter(Boolean).join(" ");
}
