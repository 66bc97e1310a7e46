// The two logs of a replica under tabs: the launch's while it is launched, then its own, unless somebody chose.

import { setAttribute } from "./dom.js";
import { LogView } from "./log.js";
import * as paths from "./paths.js";

const LABELS = { run: "run log", launch: "launch log" };
const BEFORE_RUN = new Set(["PENDING", "PROVISIONING"]);

export class ReplicaLogs {
  #place;
  #tabs;
  #id;
  #shown = null;
  #view = null;
  #chosen;
  #lines = null; // offsets of the lines that the address asks for

  /** `tabs` are buttons with data-which; a choice is kept in the address, as #run, and lines as #run@120-480. */
  constructor({ place, tabs, id }) {
    this.#place = place;
    this.#tabs = [...tabs];
    this.#id = id;
    this.#open();
    addEventListener("hashchange", () => {
      this.#open();
      if (this.#chosen) this.#show(this.#chosen);
      this.#goToLines();
    });
    for (const tab of this.#tabs) {
      tab.addEventListener("click", () => this.#choose(tab.dataset.which));
      tab.addEventListener("keydown", (key) => {
        if (key.key !== "ArrowLeft" && key.key !== "ArrowRight") return;
        const other = this.#tabs.find((each) => each !== tab);
        this.#choose(other.dataset.which);
        other.focus();
      });
    }
  }

  /** Show the log that fits the replica's state. */
  draw(replica) {
    // A replica that never got as far as running has nothing to say but its launch.
    const launch = BEFORE_RUN.has(replica.state) || (replica.ended_at !== null && replica.launched_at === null);
    this.#show(this.#chosen ?? (launch ? "launch" : "run"));
  }

  // What the address asks for.
  #open() {
    const asked = /^#(run|launch)(?:@(\d{1,15})(?:-(\d{1,15}))?)?$/.exec(location.hash);
    this.#chosen = asked ? asked[1] : null;
    this.#lines = asked?.[2] ? [Number(asked[2]), Number(asked[3] ?? asked[2])] : null;
  }

  #goToLines() {
    if (this.#lines) this.#view.jump(...this.#lines);
    this.#lines = null;
  }

  #choose(which) {
    this.#chosen = which;
    history.replaceState(null, "", `#${which}`);
    this.#show(which);
  }

  #show(which) {
    if (which === this.#shown) return;
    this.#shown = which;
    for (const tab of this.#tabs) {
      const selected = tab.dataset.which === which;
      setAttribute(tab, "aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      if (selected) this.#place.setAttribute("aria-labelledby", tab.id);
    }
    this.#view?.close();
    const log = paths.replicaLog(this.#id, which);
    const place = (from, to) => `#${which}@${from === to ? from : `${from}-${to}`}`;
    this.#view = new LogView(this.#place, {
      url: `ws/log?replica=${this.#id}&which=${which}`,
      log,
      label: LABELS[which],
      picked: (from, to) => history.replaceState(null, "", place(from, to)),
      link: (from, to) => new URL(place(from, to), location.href).href,
    });
    this.#goToLines();
  }
}
