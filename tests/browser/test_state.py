"""Snapshot + events = later snapshot: for every action, at every step, also with events that are known already."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from replicas.web.presenters import KINDS, QUIET
from tests.browser.conftest import Desk
from tests.support.polling import eventually
from tests.web import people
from tests.web.site import Scribe

PAGES = {
    "services": ("/services.json", "ServicesState", {}),
    "service": ("/services/{name}/snapshot.json", "ServiceState", {}),
    "service-everything": ("/services/{name}/snapshot.json?events=all", "ServiceState", {"choice": "all"}),
    "service-people": ("/services/{name}/snapshot.json?events=people", "ServiceState", {"choice": "people"}),
    "service-rollout": ("/services/{name}/snapshot.json?events=rollout", "ServiceState", {"choice": "rollout"}),
    "replica": ("/services/{name}/replicas/1/snapshot.json", "ReplicaState", {}),
    "operations": ("/operations.json", "OperationsState", {}),
    "versions": ("/services/{name}/versions.json", "VersionsState", {"shown": 100, "older": False}),
    "head": ("/services/{name}/snapshot.json", "HeadState", {}),
}
# What the page's own script does with a snapshot and the feed's messages.
REPLAY = """async ([kind, page, events]) => {
  const states = await import("/static/js/state.js");
  const make = (snapshot) => new states[kind](kind === "ServicesState" ? snapshot : {...page, snapshot});
  const state = make(page.snapshot);
  for (const event of events) state.apply(event);
  return {dump: state.dump(), later: make(page.later).dump(), stale: state.stale === true};
}"""


def story(clerk: Scribe, name: str) -> list[Callable[[], Any]]:
    """Everything that can happen to a service, in an order in which it may; replica 1 is there before."""
    return [
        lambda: clerk.scale(name=name, target=4),
        lambda: clerk.provisioning(name=name, number=1),
        lambda: clerk.waiting(name=name, number=1, reason="setup"),
        lambda: clerk.go_on(name=name, number=1),
        lambda: clerk.launched(name=name, number=1),
        lambda: clerk.probed(name=name, number=1),
        lambda: clerk.noted(name=name, number=1, detail="GET /healthz: 204"),
        lambda: clerk.report(name=name, status="READY", reason="1 of 4 ready"),
        lambda: clerk.report(name=name, status="READY", reason="1 of 4 ready; launching more"),
        lambda: clerk.pending(name=name),
        lambda: clerk.pending(name=name),
        lambda: clerk.withdraw(name=name, number=2),
        lambda: clerk.provisioning(name=name, number=3),
        lambda: clerk.cancel(name=name, number=3),
        lambda: clerk.probed(name=name, number=1, ok=False, detail="no answer"),
        lambda: clerk.rollout_proved(name=name, best=1),
        lambda: clerk.rollout_ended(name=name, how="succeed", reason="version 1 has taken over"),
        lambda: clerk.restart(name=name),
        lambda: clerk.steer(name=name, verb="pause"),
        lambda: clerk.ready(name=name),
        lambda: clerk.steer(name=name, verb="resume"),
        lambda: clerk.exited(name=name, number=1),
        lambda: clerk.down(name=name, number=1),
        lambda: clerk.terminate(name=name, number=4),
        lambda: clerk.retire(name=name, number=4, trigger="drain_begun"),
        lambda: clerk.retire(name=name, number=4, trigger="drained"),
        lambda: clerk.down(name=name, number=4),
        lambda: clerk.pending(name=name, replaces=1),
        lambda: clerk.terminate(name=name, number=2, purge=True),
        lambda: clerk.deploy(name=f"{name}-other"),
        lambda: clerk.apply(text=people.text(name, replicas=1), actor="bob", message="other"),
        lambda: clerk.steer(name=name, verb="abort"),
        lambda: clerk.rollout_proved(name=name, best=1),
        lambda: clerk.rollout_ended(name=name, how="fail", reason="it failed"),
        lambda: clerk.roll_back(name=name, number=2, message="back to the second"),
        lambda: clerk.take_down(name=name),
        lambda: clerk.report(name=name, status="DOWN", reason="nothing of it runs"),
        lambda: clerk.take_down(name=f"{name}-other", purge=True),
        lambda: clerk.forget(name=f"{name}-other"),
    ]


@pytest.fixture(scope="module")
def page(desk: Desk, chromium: Browser) -> Iterator[Page]:
    """A page of ours, for its scripts."""
    context = chromium.new_context()
    opened = context.new_page()
    opened.goto(desk.origin + "/login")
    yield opened
    context.close()


PURGED = 28  # the step of the story that purges a replica


class Telling:
    """A story that is told step by step, with the snapshot before each step and after the last."""

    def __init__(self, desk: Desk, name: str, kind: str) -> None:
        self.clerk, self.name = desk.clerk, name
        session = desk.clerk.user(name=f"reader-{name}", permissions=["view_service"])["session"]
        path, self.state, options = PAGES[kind]
        self.page = {"quiet": QUIET, "kinds": KINDS, "ended_shown": 50, "shown": 100, **options}
        self.of_service = kind not in {"services", "operations"}
        self.take = lambda: desk.json(path.format(name=name), session)
        self.clerk.deploy(name=name, replicas=2)
        self.clerk.pending(name=name)
        self.snapshots = [self.take()]

    def tell(self) -> None:
        """Let everything happen."""
        for step in story(self.clerk, self.name):
            step()
            self.snapshots.append(self.take())
        self.events = self.clerk.events(after=self.snapshots[0]["cursor"])

    def replayed(self, page: Page, start: int, end: int, cursor: int) -> dict[str, Any]:
        """Snapshot `start` with the events from `cursor` to snapshot `end`, and that snapshot."""
        last = self.snapshots[end]["cursor"]
        events = [
            event
            for event in self.events
            if cursor < event["id"] <= last and (event["service"] == self.name or not self.of_service)
        ]
        data = self.page | {"snapshot": self.snapshots[start], "later": self.snapshots[end]}
        found: dict[str, Any] = page.evaluate(REPLAY, [self.state, data, events])
        return found


@pytest.mark.parametrize("kind", PAGES)
def test_a_snapshot_and_the_events_after_it_make_every_later_snapshot(
    kind: str, desk: Desk, page: Page, name: str
) -> None:
    telling = Telling(desk, name, kind)
    telling.tell()
    steps = len(telling.snapshots) - 1
    for end in range(1, steps + 1):
        for start in {0, end - 1, end // 2}:
            found = telling.replayed(page, start, end, telling.snapshots[start]["cursor"])
            assert not found["stale"]
            assert found["dump"] == found["later"], (start, end)


@pytest.mark.parametrize("kind", PAGES)
def test_events_that_a_snapshot_knows_already_change_nothing(kind: str, desk: Desk, page: Page, name: str) -> None:
    telling = Telling(desk, name, kind)
    telling.tell()
    last = len(telling.snapshots) - 1
    for start in range(0, last + 1, 3):
        for earlier in {0, start // 2}:
            cursor = telling.snapshots[earlier]["cursor"]
            found = telling.replayed(page, start, last, cursor)
            # What was purged meanwhile may be beyond what a page can know: then it asks for a snapshot.
            assert found["dump"] == found["later"] or (found["stale"] and start > PURGED), (earlier, start)


def test_history_beyond_the_cap_keeps_equal(desk: Desk, page: Page, name: str) -> None:
    telling = Telling(desk, name, "service")
    for _ in range(4):
        for _ in range(15):
            number = telling.clerk.pending(name=name)
            telling.clerk.withdraw(name=name, number=number)
        telling.snapshots.append(telling.take())
    telling.events = telling.clerk.events(after=telling.snapshots[0]["cursor"])
    for end in range(1, 5):
        found = telling.replayed(page, 0, end, telling.snapshots[0]["cursor"])
        assert found["dump"] == found["later"]
    assert found["dump"]["ended"] == 60
    assert len(found["dump"]["replicas"]) == 51
    telling.clerk.terminate(name=name, number=60, purge=True)
    telling.snapshots.append(telling.take())
    telling.events = telling.clerk.events(after=telling.snapshots[0]["cursor"])
    assert telling.replayed(page, 4, 5, telling.snapshots[4]["cursor"])["stale"]


NORMAL = """() => {
  const copy = document.querySelector("main").cloneNode(true);
  for (const node of copy.querySelectorAll("time")) node.textContent = node.dateTime ? "then" : "";
  const moving = "#start-bar, #traffic, .share, .log-place, [name=csrfmiddlewaretoken]";
  for (const node of copy.querySelectorAll(moving)) node.remove();
  return copy.innerHTML;
}"""


@pytest.mark.parametrize(
    "path", ["/", "/services/{name}/", "/services/{name}/replicas/1/", "/operations/", "/services/{name}/versions/"]
)
def test_a_page_that_was_watched_is_the_page_that_is_opened_now(
    path: str, desk: Desk, visit: Callable[..., Any], name: str
) -> None:
    clerk = desk.clerk
    clerk.deploy(name=name, replicas=2)
    clerk.pending(name=name)
    with visit() as visitor:
        watched = visitor.goto(path.format(name=name))
        watched.locator("#connection[data-state=live]").wait_for()
        visitor.mark()
        for step in story(clerk, name)[:PURGED]:
            step()
        clerk.report(name=name, status="FAILED", reason="at rest")
        clerk.explain(name=name, number=1, reason="at rest")
        opened = visitor.context.new_page()
        opened.goto(watched.url)
        opened.locator("#connection[data-state=live]").wait_for()

        def same() -> bool:  # the feed may bring the story in any number of messages
            assert watched.evaluate(NORMAL) == opened.evaluate(NORMAL)
            return True

        eventually(same, 30)
        assert visitor.marked()


ROLLOUT = """async () => {
  const { boundsText, trafficOf, waits } = await import("/static/js/rollout.js");
  const rollout = { kind: "first", mode: "rolling", best: 0, to_version: 1, progressed_at: "p", paused_at: null };
  const state = { rollout, service: { target: 0, updated_at: "u" }, versions: new Map() };
  return {
    waits: waits(state, [], 0),
    first: boundsText(rollout, { max_surge: 1 }, 2),
    update: boundsText({ ...rollout, kind: "update" }, { max_surge: 1 }, 2),
    traffic: [[true, true, 0], [true, false, 0], [true, false, 1], [false, true, 1]].map((each) => trafficOf(...each)),
  };
}"""


def test_the_words_of_a_rollout_promise_nothing_that_is_not_so(desk: Desk, page: Page) -> None:
    assert page.evaluate(ROLLOUT) == {
        "waits": ["a replica to be wanted", "u"],
        "first": "at most 3 alive",
        "update": "at most 3 alive, at least 2 ready",
        "traffic": ["gets traffic once one is ready", "gets no traffic", "gets traffic", "gets no traffic"],
    }
