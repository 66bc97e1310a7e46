// Which of the live replicas of a service have a row: those that fit the filters, and of these a hundred until more are
// asked for. Without the bound each change would cost as much as the whole table.

import { h, keyed, setText, show } from "./dom.js";
import { count, tally } from "./words.js";

const STEP = 100;

/** Calls `redraw` when others are to be shown. The elements are those of the service's page. */
export class Shown {
  #most = STEP;
  #redraw;
  #filters = document.getElementById("replica-filters");
  #state = document.getElementById("replica-state");
  #text = document.getElementById("replica-text");
  #more = document.getElementById("more-replicas");
  #rest = document.getElementById("replicas-rest");
  #none = document.getElementById("no-replicas");

  constructor(redraw) {
    this.#redraw = redraw;
    this.#state.addEventListener("change", () => this.#show(STEP));
    this.#text.addEventListener("input", () => this.#show(STEP));
    this.#more.addEventListener("click", () => this.#show(this.#most + STEP));
    let before = STEP;
    addEventListener("beforeprint", () => {
      before = this.#most;
      this.#show(Infinity); // paper has no button for more
    });
    addEventListener("afterprint", () => this.#show(before));
  }

  #show(most) {
    this.#most = most;
    this.#redraw();
  }

  /** Those of the replicas, in their order, that have a row; says beside the table what is left out. */
  of(replicas) {
    const asked = this.#state.value !== "" || this.#text.value.trim() !== "";
    show(this.#filters, asked || replicas.length > STEP);
    this.#offer(replicas);
    const fitting = asked ? replicas.filter((replica) => this.#fits(replica)) : replicas;
    const shown = fitting.slice(0, this.#most);
    const left = fitting.length - shown.length;
    show(this.#rest.parentElement, left > 0);
    setText(this.#rest, left > 0 ? `The newest ${shown.length} of ${count(fitting.length, "replica")} have a row.` : "");
    setText(this.#more, `Show ${Math.min(STEP, left)} more`);
    setText(this.#none, replicas.length === 0 ? "No replica is alive." : "No replica fits the filters.");
    show(this.#none, shown.length === 0);
    return shown;
  }

  #fits(replica) {
    if (this.#state.value && replica.state !== this.#state.value) return false;
    const text = this.#text.value.trim().toLowerCase();
    const told = [`#${replica.number}`, `v${replica.version}`, replica.url, replica.reason, replica.probe_detail];
    return told.some((each) => each?.toLowerCase().includes(text));
  }

  // The states that there are, with how many are in each. A list that somebody has open is left alone.
  #offer(replicas) {
    if (this.#filters.hidden || document.activeElement === this.#state) return;
    const chosen = this.#state.value;
    const found = new Map(tally(replicas));
    if (chosen && !found.has(chosen)) found.set(chosen, 0);
    const options = [["", replicas.length], ...found];
    keyed(this.#state, options, ([state]) => state, ([state]) => h("option", { value: state }), (node, [state, number]) =>
      setText(node, `${state || "Every state"}: ${number}`),
    );
    this.#state.value = chosen;
  }
}
