// What a page knows, without any DOM: a snapshot, and then the feed's events on top of it. After the same events a state
// equals a later snapshot: a row is replaced only by one with a higher revision, so replaying what is known is harmless.

const LIVE_OPERATIONS = new Set(["QUEUED", "RUNNING", "WAITING", "CANCELLING"]);
const ENDS = new Set([
  "TERMINATED",
  "FAILED",
  "FAILED_PROVISION",
  "FAILED_INITIAL_DELAY",
  "FAILED_PROBING",
  "FAILED_CLEANUP",
  "PREEMPTED",
]);
const TROUBLE = new Set(["FAILED", "FAILED_CLEANUP", "NOT_READY"]);
export const CELL = ["id", "revision", "service_id", "number", "version", "state"];

/** Whether the replica has ended. */
export const ended = (replica) => ENDS.has(replica.state);

/** Whether the operation can still do something. */
export const liveOperation = (operation) => LIVE_OPERATIONS.has(operation.status);

/** Whether ready replicas of a version get traffic under a service's latest rollout, as replicas.core.rollout has it. */
export function listed(rollout, version) {
  if (!rollout) return true;
  if (rollout.mode !== "blue_green") return !rollout.held.includes(version);
  if (rollout.switched_at) return version === rollout.to_version;
  return !rollout.held.includes(version) && version !== rollout.to_version;
}

/** Rows by id; those that `keep` refuses, and those that are forgotten, are left out. */
class Rows {
  constructor(keep = () => true) {
    this.keep = keep;
    this.byId = new Map();
  }

  load(rows) {
    this.byId.clear();
    for (const row of rows) this.put(row);
  }

  /** Take a row over; false when what is here is as new. */
  put(row) {
    const known = this.byId.get(row.id);
    if (!row.forgotten && known && known.revision >= row.revision) return false;
    if (row.forgotten || !this.keep(row)) this.byId.delete(row.id);
    else this.byId.set(row.id, row);
    return true;
  }

  values() {
    return [...this.byId.values()];
  }
}

/** Events, newest first: the newest `limit`, more after older pages were asked for. */
class Timeline {
  constructor({ choice, quiet, kinds }) {
    Object.assign(this, { choice, quiet, kinds });
  }

  load(snapshot) {
    this.events = snapshot.events;
    this.more = snapshot.more;
    this.limit = Math.max(snapshot.events.length, 50);
  }

  // The server has the same rule in replicas/web/presenters.py.
  wants(event) {
    if (this.choice === "all") return true;
    if (this.choice === "people")
      return event.source !== "" && event.kind !== "version" && !this.quiet.triggers.includes(event.trigger);
    if (this.choice) return this.kinds[this.choice].includes(event.kind);
    const { kinds, triggers, unchanged } = this.quiet;
    const same = unchanged.includes(event.trigger) && event.old === event.new;
    return !kinds.includes(event.kind) && !triggers.includes(event.trigger) && !same;
  }

  add({ data, ...event }) {
    if (!this.wants(event) || (this.events.length > 0 && event.id <= this.events[0].id)) return;
    const key = { version: "number", rollout: "to_version" }[event.kind] ?? "version";
    const version = data[key] ?? null;
    this.events = [{ ...event, version }, ...this.events];
    if (this.events.length > this.limit) {
      this.events.length = this.limit;
      this.more = true;
    }
  }

  addOlder(page) {
    this.events = [...this.events, ...page.events];
    this.more = page.more;
    this.limit = this.events.length;
  }
}

/** Whether a service is among those that a list is asked for; the server has the same rule in replicas/web/listing.py. */
export function matches(wanted, service) {
  const { q, status, provider, owner } = wanted;
  const text = q.toLowerCase();
  const found = text === "" || [service.name, service.status, service.reason].some((part) => part.toLowerCase().includes(text));
  const trouble = status === "trouble" && TROUBLE.has(service.status);
  const right = status === "" || status === service.status || trouble;
  return found && right && (provider === "" || service.provider === provider) && (owner === "" || service.owner === owner);
}

/**
 * A page of services with the live replicas as cells and the rollouts that go on; and the status of every service there
 * is. Where all that matches is on one page (`whole`), services come and go by themselves. Else those of the page follow,
 * and `news` tells what happened to others. `stale` asks for a new snapshot.
 */
export class ServicesState {
  constructor(snapshot) {
    this.index = new Rows();
    this.services = new Rows();
    // A new service is told of after its rollout.
    const concerns = (row) => this.whole || this.services.byId.has(row.service_id);
    this.replicas = new Rows((replica) => !ended(replica) && concerns(replica));
    this.rollouts = new Rows((rollout) => rollout.state === "PROGRESSING" && concerns(rollout));
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.wanted = snapshot.wanted;
    this.pages = snapshot.pages;
    this.matched = snapshot.matched;
    this.providers = snapshot.providers;
    this.owners = snapshot.owners;
    this.news = { come: new Set(), changed: new Set(), gone: new Set() };
    this.index.load(snapshot.index.map(([id, revision, status]) => ({ id, revision, status })));
    this.services.load(snapshot.services);
    this.replicas.load(snapshot.replicas);
    this.rollouts.load(snapshot.rollouts);
    this.cards = new Map(this.services.values().map((service) => [service.id, this.#card(service, [])]));
    for (const replica of this.replicas.values().sort(byNumber)) this.cards.get(replica.service_id)?.replicas.push(replica);
  }

  get whole() {
    return this.pages <= 1;
  }

  apply(event) {
    if (event.kind === "service") this.#applyService(event.data);
    if (event.kind === "replica" && this.replicas.put(cell(event.data))) this.#touch(event.data.service_id);
    if (event.kind === "rollout" && this.rollouts.put(event.data)) this.#touch(event.data.service_id);
  }

  #applyService(row) {
    const before = this.index.byId.get(row.id);
    const { id, revision, status, forgotten } = row;
    if (!this.index.put({ id, revision, status, forgotten })) return;
    const known = this.services.byId.has(id);
    const fits = !forgotten && matches(this.wanted, row);
    if (known && (fits || !this.whole || forgotten)) {
      this.services.put(row);
      this.#touch(id);
    } else if (known) this.#leave(id);
    else if (!this.whole) this.#tell(row, before, fits);
    else if (fits && before) this.stale = true; // its replicas are not known here
    else if (fits) {
      this.services.put(row);
      this.#touch(id);
    }
  }

  #leave(id) {
    this.services.byId.delete(id);
    for (const rows of [this.replicas, this.rollouts])
      for (const row of rows.values()) if (row.service_id === id) rows.byId.delete(row.id);
    this.cards.delete(id);
  }

  #tell(row, before, fits) {
    if (row.forgotten) this.news.gone.add(row.id);
    else if (fits && !before) this.news.come.add(row.id);
    else if (fits && before.status !== row.status) this.news.changed.add(row.id);
  }

  #card(service, replicas) {
    const rollout = this.rollouts.values().find((each) => each.service_id === service.id) ?? null;
    return { service, replicas, rollout };
  }

  // A card is a new object when something on it changed; what is drawn of the others is left alone.
  #touch(id) {
    const service = this.services.byId.get(id);
    if (service) this.cards.set(id, this.#card(service, null));
    else this.cards.delete(id);
  }

  /** `{service, replicas, rollout}` each, by name; the replicas by number. */
  list() {
    const stale = new Map([...this.cards.values()].filter((card) => card.replicas === null).map((c) => [c.service.id, c]));
    for (const card of stale.values()) card.replicas = [];
    if (stale.size > 0) for (const each of this.replicas.values()) stale.get(each.service_id)?.replicas.push(each);
    for (const card of stale.values()) card.replicas.sort(byNumber);
    return [...this.cards.values()].sort((a, b) => compare(a.service.name, b.service.name));
  }

  /** How many services there are with each status. */
  statuses() {
    const counts = new Map();
    for (const { status } of this.index.values()) counts.set(status, (counts.get(status) ?? 0) + 1);
    return counts;
  }

  dump() {
    return {
      index: byId(this.index.values()).map(({ id, revision, status }) => [id, revision, status]),
      services: byId(this.services.values()),
      replicas: byId(this.replicas.values()),
      rollouts: byId(this.rollouts.values()),
    };
  }
}

/** One service with its latest rollout, its replicas, live operations and events. `stale` asks for a new snapshot. */
export class ServiceState {
  constructor({ snapshot, quiet, kinds, choice = "", ended_shown: shown }) {
    this.shown = shown;
    this.replicas = new Rows();
    this.versions = new Rows();
    this.operations = new Rows(liveOperation);
    this.timeline = new Timeline({ choice, quiet, kinds });
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.service = snapshot.service;
    this.forgotten = false;
    this.rollout = snapshot.rollout;
    this.versions.load(snapshot.versions);
    this.ended = snapshot.ended;
    this.replicas.load(snapshot.replicas);
    this.operations.load(snapshot.operations);
    this.timeline.load(snapshot);
  }

  apply(event) {
    const row = event.data;
    if (event.kind === "service") this.#applyService(row);
    else if (row.service_id !== this.service.id) this.stale = true;
    else if (event.kind === "replica") this.#applyReplica(row);
    else if (event.kind === "operation") this.operations.put(row);
    else if (event.kind === "version") this.versions.put(row);
    else if (event.kind === "rollout") this.#applyRollout(row);
    this.timeline.add(event);
  }

  #applyRollout(row) {
    const known = this.rollout;
    if (!known || row.id > known.id || (row.id === known.id && row.revision > known.revision)) this.rollout = row;
  }

  /** What is known of a version: the active one, and the one that would be turned back to, always are. */
  version(number) {
    return this.versions.values().find((version) => version.number === number) ?? null;
  }

  #applyService(row) {
    if (row.id !== this.service.id) this.stale = true; // forgotten, and made anew under the same name
    else if (row.forgotten || row.revision > this.service.revision) {
      this.service = row;
      this.forgotten = row.forgotten === true;
    }
  }

  #applyReplica(row) {
    const known = this.replicas.byId.get(row.id);
    if (!known && ended(row)) {
      // Beyond the history that is shown, or gone before the snapshot: what the count is now, only the server knows.
      if (row.forgotten) this.stale = true;
      return;
    }
    if (!this.replicas.put(row)) return;
    if (row.forgotten) {
      this.ended -= ended(known) ? 1 : 0;
      if (this.ended >= this.shown) this.stale = true; // an older one has room now
    } else if (ended(row) && !(known && ended(known))) {
      this.ended += 1;
      this.#trim();
    }
  }

  #trim() {
    for (const replica of this.history().slice(this.shown)) this.replicas.byId.delete(replica.id);
  }

  /** The replicas that live, newest number first. */
  live() {
    return this.replicas.values().filter((replica) => !ended(replica)).sort(byNumberDown);
  }

  /** The replicas that ended, newest number first. */
  history() {
    return this.replicas.values().filter(ended).sort(byNumberDown);
  }

  /** Of each number that was replaced, the number of the newest replica that took its place. */
  heirs() {
    const pairs = this.replicas.values().filter((replica) => replica.replaces !== null);
    return new Map(pairs.sort(byNumber).map((replica) => [replica.replaces, replica.number]));
  }

  dump() {
    return {
      service: this.service,
      rollout: this.rollout,
      versions: [...new Set([this.rollout?.good_version, this.service.version])].map((n) => this.version(n)).filter(Boolean),
      replicas: byId(this.replicas.values()),
      ended: this.ended,
      operations: byId(this.operations.values()),
      events: this.timeline.events,
      more: this.timeline.more,
    };
  }
}

/** One replica with its operations and events, out of the feed of its service. */
export class ReplicaState {
  constructor({ snapshot }) {
    this.operations = new Rows();
    this.timeline = new Timeline({ choice: "all" });
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.replica = snapshot.replica;
    this.replacedBy = snapshot.replaced_by;
    this.operations.load(snapshot.operations);
    this.timeline.load(snapshot);
  }

  apply(event) {
    if (event.kind === "replica" && event.object_id === this.replica.id) {
      if (event.revision > this.replica.revision) this.replica = event.data;
    } else if (event.kind === "operation" && event.data.replica_id === this.replica.id) {
      this.operations.put(event.data);
    } else {
      if (event.kind === "replica") this.#seeHeir(event.data);
      return;
    }
    this.timeline.add(event);
  }

  #seeHeir(row) {
    if (row.service_id !== this.replica.service_id || row.replaces !== this.replica.number) return;
    if (!row.forgotten) this.replacedBy = Math.max(this.replacedBy ?? 0, row.number);
    else if (row.number === this.replacedBy) this.stale = true; // an older one may have done so before
  }

  /** The operations, newest first. */
  list() {
    return this.operations.values().sort((a, b) => b.id - a.id);
  }

  dump() {
    return {
      replica: this.replica,
      replacedBy: this.replacedBy,
      operations: byId(this.operations.values()),
      events: this.timeline.events,
      more: this.timeline.more,
    };
  }
}

/** The versions of one service: the newest `shown`, or (`older`) a page of earlier ones that nothing is added to. */
export class VersionsState {
  constructor({ snapshot, shown, older }) {
    this.shown = shown;
    this.older = older;
    this.versions = new Rows();
    this.rollouts = new Rows();
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.service = snapshot.service;
    this.more = snapshot.more;
    this.versions.load(snapshot.versions);
    this.rollouts.load(snapshot.rollouts);
  }

  apply(event) {
    const row = event.data;
    if (event.kind === "rollout" && this.#shows(row.to_version)) this.rollouts.put(row);
    if (event.kind === "service") {
      if (row.id !== this.service.id) this.stale = true;
      else if (row.forgotten || row.revision > this.service.revision) this.service = row;
    } else if (event.kind === "version" && !this.older) {
      if (row.service_id !== this.service.id) this.stale = true;
      else if (this.versions.put(row)) this.#trim();
    }
  }

  #trim() {
    for (const version of this.list().slice(this.shown)) {
      this.versions.byId.delete(version.id);
      for (const each of this.rollouts.values()) if (each.to_version === version.number) this.rollouts.byId.delete(each.id);
      this.more = true;
    }
  }

  #shows(number) {
    return this.versions.values().some((version) => version.number === number);
  }

  /** The latest rollout to each version. */
  outcomes() {
    return new Map(byId(this.rollouts.values()).map((rollout) => [rollout.to_version, rollout]));
  }

  /** The versions, newest first. */
  list() {
    return this.versions.values().sort(byNumberDown);
  }

  dump() {
    return {
      service: this.service,
      versions: byId(this.versions.values()),
      rollouts: byId(this.rollouts.values()),
      more: this.more,
    };
  }
}

/** One service alone, for pages whose rest never changes. */
export class HeadState {
  constructor({ snapshot }) {
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.service = snapshot.service;
  }

  apply(event) {
    if (event.kind !== "service") return;
    if (event.data.id !== this.service.id) this.stale = true;
    else if (event.data.forgotten || event.data.revision > this.service.revision) this.service = event.data;
  }

  dump() {
    return { service: this.service };
  }
}

/** The operations of all services: the live ones, and the `shown` newest that ended. */
export class OperationsState {
  constructor({ snapshot, shown }) {
    this.shown = shown;
    this.operations = new Rows();
    this.load(snapshot);
  }

  load(snapshot) {
    this.stale = false;
    this.cursor = snapshot.cursor;
    this.operations.load(snapshot.operations);
    this.services = new Map(Object.entries(snapshot.services).map(([id, name]) => [Number(id), name]));
    this.#trim();
  }

  apply(event) {
    if (event.kind !== "operation") {
      if (event.data.forgotten) this.#drop(event.kind === "service" ? "service_id" : "replica_id", event.object_id);
      return;
    }
    this.services.set(event.data.service_id, event.service);
    if (this.operations.put(event.data) && !liveOperation(event.data)) this.#trim();
  }

  // Operations go with their replica or service, and have no event of their own then.
  #drop(field, id) {
    const full = this.history().length >= this.shown;
    for (const operation of this.operations.values()) {
      if (operation[field] !== id) continue;
      this.operations.byId.delete(operation.id);
      if (full) this.stale = true; // older ones have room now
    }
  }

  #trim() {
    for (const operation of this.history().slice(this.shown)) this.operations.byId.delete(operation.id);
  }

  /** Those that can still do something, in the order in which they were asked for. */
  live() {
    return this.operations.values().filter(liveOperation).sort((a, b) => a.id - b.id);
  }

  /** Those that ended, newest first. */
  history() {
    return this.operations.values().filter((each) => !liveOperation(each)).sort((a, b) => b.id - a.id);
  }

  dump() {
    return { operations: byId(this.operations.values()) };
  }
}

/** Of a replica's row, what a cell shows. */
function cell(row) {
  const small = Object.fromEntries(CELL.map((name) => [name, row[name]]));
  return row.forgotten ? { ...small, forgotten: true } : small;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byNumber = (a, b) => a.number - b.number;
const byNumberDown = (a, b) => b.number - a.number;
const byId = (rows) => [...rows].sort((a, b) => a.id - b.id);
