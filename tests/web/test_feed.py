"""The feed of events as a browser sees it: replay, live, filters, resets, and how fast."""

import time
from itertools import pairwise

from tests.support.patience import Patience, within
from tests.support.polling import eventually
from tests.web.site import Site, receive, receive_events


def test_hello_comes_first_and_names_server_and_cursor(site: Site, viewer: str, service: int) -> None:
    last = site.scribe.emit(service_id=service)[-1]
    with site.socket(f"/ws/feed?after={last}", viewer) as ws:
        hello = receive(ws)
    assert hello["type"] == "hello"
    assert hello["cursor"] == last
    assert hello["server"]


def test_without_a_cursor_it_begins_with_the_next_event(site: Site, viewer: str, service: int) -> None:
    site.scribe.emit(service_id=service, count=3)
    with site.socket("/ws/feed", viewer) as ws:
        assert receive(ws)["cursor"] == site.scribe.newest()
        last = site.scribe.emit(service_id=service)[-1]
        assert [event["id"] for event in receive_events(ws, last)] == [last]


def test_an_event_carries_what_changed(site: Site, viewer: str, service: int) -> None:
    with site.socket("/ws/feed", viewer) as ws:
        receive(ws)
        last = site.scribe.emit(service_id=service, reason="<b>née</b>", trigger="noted")[-1]
        [event] = receive_events(ws, last)
    assert event.pop("at").endswith("Z")
    data = event.pop("data")
    assert data["id"] == service
    assert data["revision"] == 1
    assert event == {
        "id": last,
        "service": data["name"],
        "kind": "service",
        "object_id": service,
        "number": None,
        "revision": 1,
        "trigger": "noted",
        "old": "",
        "new": "",
        "reason": "<b>née</b>",
        "actor": "test",
        "source": "",
        "address": "",
        "token": "",
    }


def test_replay_and_live_meet_without_gap_or_double(site: Site, viewer: str, service: int) -> None:
    start = site.scribe.newest()
    site.scribe.emit(service_id=service, count=1300, each=100)
    with site.socket(f"/ws/feed?after={start}", viewer) as ws:
        receive(ws)
        last = site.scribe.emit(service_id=service, count=400, each=7)[-1]
        ids = [event["id"] for event in receive_events(ws, last)]
    assert ids == list(range(start + 1, last + 1))


def test_a_lone_event_goes_out_at_once(site: Site, viewer: str, service: int) -> None:
    """Also the fallback poll would bring it, within a second: three of ten in a row are never so quick by that."""
    quick = 0
    with site.socket("/ws/feed", viewer) as ws:
        receive(ws)
        for _ in range(30):
            patience = Patience(0.2)
            last = site.scribe.emit(service_id=service)[-1]
            receive_events(ws, last)
            quick = 0 if patience.over() else quick + 1
            if quick == 3:
                break
            time.sleep(0.3)  # lone means that the one before is past
    assert quick == 3


def test_a_burst_becomes_few_messages(site: Site, viewer: str, service: int) -> None:
    with site.socket("/ws/feed", viewer) as ws:
        receive(ws)
        began = time.monotonic()
        last = site.scribe.emit(service_id=service, count=300)[-1]
        messages, newest = 0, 0
        while newest < last:
            newest = receive(ws)["cursor"]
            messages += 1
        took = time.monotonic() - began
    assert messages <= min(10 * took + 3, 100)


def test_events_of_another_service_are_left_out_but_the_cursor_goes_on(site: Site, viewer: str) -> None:
    mine, other = site.scribe.service(name="filter-mine"), site.scribe.service(name="filter-other")
    start = site.scribe.newest()
    site.scribe.emit(service_id=other, count=30)
    wanted = site.scribe.emit(service_id=mine, count=2)
    site.scribe.emit(service_id=other, count=30)
    with site.socket(f"/ws/feed?after={start}&service=filter-mine", viewer) as ws:
        receive(ws)
        assert [event["id"] for event in receive_events(ws, wanted[-1])] == wanted
        live = site.scribe.emit(service_id=other) and site.scribe.emit(service_id=mine)
        assert [event["id"] for event in receive_events(ws, live[-1])] == live
    # All of that has been read by now, so that a page which comes back is told to go on behind the others' events too.
    with site.socket(f"/ws/feed?after={start}&service=filter-mine", viewer) as ws:
        receive(ws)
        assert [event["id"] for event in receive_events(ws, live[-1])] == [*wanted, *live]


def test_an_event_that_rang_no_bell_comes_with_the_poll(site: Site, viewer: str, service: int) -> None:
    with site.socket("/ws/feed", viewer) as ws:
        receive(ws)
        last = site.scribe.emit_quietly(service_id=service)
        assert receive_events(ws, last, seconds=5)[-1]["id"] == last


def test_a_cursor_ahead_of_all_events_is_reset(site: Site, viewer: str) -> None:
    with site.socket(f"/ws/feed?after={site.scribe.newest() + 1000}", viewer) as ws:
        receive(ws)
        assert receive(ws) == {"type": "reset", "reason": "your cursor is ahead of the newest event"}


def test_a_cursor_behind_pruned_events_is_reset(site: Site, viewer: str, service: int) -> None:
    ids = site.scribe.emit(service_id=service, count=10)
    site.scribe.prune_events(up_to=ids[4])
    with site.socket(f"/ws/feed?after={ids[3]}", viewer) as ws:
        receive(ws)
        assert receive(ws)["type"] == "reset"
    with site.socket(f"/ws/feed?after={ids[4]}", viewer) as ws:
        receive(ws)
        assert [event["id"] for event in receive_events(ws, ids[-1])] == ids[5:]


def test_an_idle_socket_is_pinged_with_its_cursor(site: Site, viewer: str) -> None:
    with site.socket("/ws/feed", viewer) as ws:
        cursor = receive(ws)["cursor"]
        with within(12):
            message = ws.recv(timeout=60)
        assert message == f'{{"type":"ping","cursor":{cursor}}}'


def test_ready_says_how_the_feed_is(site: Site, viewer: str) -> None:
    with site.socket("/ws/feed", viewer) as ws:
        receive(ws)
        feed = eventually(lambda: site.json("/readyz", viewer)["parts"].get("feed"))
    assert feed["ok"]


def test_many_sockets_get_the_same_events(site: Site, viewer: str, service: int) -> None:
    from contextlib import ExitStack

    with ExitStack() as stack:
        sockets = [stack.enter_context(site.socket("/ws/feed", viewer)) for _ in range(20)]
        for ws in sockets:
            receive(ws)
        ids = site.scribe.emit(service_id=service, count=50, each=5)
        for ws in sockets:
            found = [event["id"] for event in receive_events(ws, ids[-1])]
            assert all(after == before + 1 for before, after in pairwise(found))
            assert found[-50:] == ids
