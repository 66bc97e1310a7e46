"""Somebody who changes their mind, in the dashboard, in Django admin and by commands; knows what was wished last."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser

import requests

from tests.chaos.cast import CAST, PARTS, Part
from tests.chaos.plan import Act
from tests.chaos.world import World
from tests.support.rows import LIVE, Row

HOLDERS = 4
Deed = Callable[[Act, Part], str]


@dataclass
class Wish:
    """What was wished of a service last. None: that is not known, since an answer was lost or the service may have
    turned back by itself (`bad`: it has been given a version that cannot work)."""

    target: int | None
    up: bool | None = True
    change: int = 0
    bad: bool = False


class Operator:
    """`do` carries out an act and says what was done, "" if there was nothing to do it to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wishes = {part.name: Wish(part.first) for part in CAST}
        self.surprises: list[str] = []
        self.deeds: dict[str, tuple[int, Deed]] = {
            "scale": (5, self.scale), "update": (3, self.update), "in_place": (1, self.in_place),
            "bad_update": (2, self.bad_update), "rollback": (1, self.rollback), "pause": (1, self.pause),
            "resume": (1, self.resume), "abort": (1, self.abort), "restart": (1, self.restart),
            "terminate": (4, self.terminate), "cancel": (2, self.cancel), "down": (1, self.down), "up": (2, self.up),
            "admin": (2, self.admin), "command": (1, self.command), "hold": (2, self.hold),
        }  # fmt: skip

    @property
    def weights(self) -> dict[str, int]:
        """The acts that it knows."""
        return {name: weight for name, (weight, _) in self.deeds.items()}

    def begin(self) -> None:
        """Deploy every service."""
        for part in CAST:
            self.world.person.apply(part.text(part.first, 0), part.name)

    def do(self, act: Act) -> str:
        """Carry out an act; after a lost answer nobody knows what is wished now."""
        wish = self.wishes[act.service]
        try:
            return self.deeds[act.name][1](act, PARTS[act.service])
        except (requests.RequestException, AssertionError) as error:
            wish.target = wish.up = None
            said = f"no answer: {type(error).__name__} {str(error)[:300]}"
            self.surprises.append(f"{act.number} {act.name} {act.service}: {said}")
            return said

    def last_wishes(self) -> None:
        """Leave nothing paused and nothing unknown. Raises what `Person` raises."""
        for part in CAST:
            wish = self.wishes[part.name]
            if wish.up is None:
                self._apply(part, wish, part.first, wish.change)
            rollout = self._rollout(part.name)
            if rollout and rollout["paused_at"] and rollout["state"] == "PROGRESSING":
                self._steer(part.name, "rollout/resume")

    # --- deeds ----------------------------------------------------------------------------------------------------

    def scale(self, act: Act, part: Part) -> str:
        target = round(act.between(0, part.most))
        return self._scaled(part, target, lambda: self.world.person.scale(part.name, target))

    def update(self, act: Act, part: Part) -> str:
        wish = self.wishes[part.name]
        target = wish.target if wish.target is not None else part.first
        return self._apply(part, wish, target, act.number)

    def in_place(self, act: Act, part: Part) -> str:
        wish = self.wishes[part.name]
        return self._apply(part, wish, round(act.between(1, part.most)), wish.change)

    def bad_update(self, act: Act, part: Part) -> str:
        proved = self.world.rows.query(
            "SELECT r.id FROM replicas_rollout r JOIN replicas_service s ON s.id = r.service_id"
            " WHERE s.name = ? AND r.state = 'SUCCEEDED' AND r.best > 0 AND s.desired = 'UP'",
            part.name,
        )
        if part.hopeless or not proved:  # without a version to go back to, it would be tried for ever
            return ""
        wish = self.wishes[part.name]
        bad = "exit" if act.amount < 0.7 else "sick"
        said = self._apply(part, wish, wish.target if wish.target is not None else part.first, act.number, bad)
        wish.target, wish.bad = None, True
        return said

    def rollback(self, act: Act, part: Part) -> str:
        expected = self.world.rows.service(part.name)["active"]
        return self._turned(part, "rollback", self._steer(part.name, "rollback", expected=expected))

    def abort(self, act: Act, part: Part) -> str:
        rollout = self._rollout(part.name)
        if not rollout or rollout["state"] != "PROGRESSING":
            return ""
        return self._turned(part, "abort", self._steer(part.name, "rollout/abort", rollout=rollout["id"]))

    def pause(self, act: Act, part: Part) -> str:
        return f"pause {part.name}" if self._steer(part.name, "rollout/pause") else ""

    def resume(self, act: Act, part: Part) -> str:
        return f"resume {part.name}" if self._steer(part.name, "rollout/resume") else ""

    def restart(self, act: Act, part: Part) -> str:
        active = self.world.rows.service(part.name)["active"]
        if self.wishes[part.name].up is False or not self.world.person.restart(part.name, active):
            return ""
        return f"restart {part.name}"

    def terminate(self, act: Act, part: Part) -> str:
        row = act.chosen(self.world.rows.replicas(part.name, *LIVE))
        return f"terminate {_name(part, row)}" if row and self.world.person.terminate(part.name, row["number"]) else ""

    def cancel(self, act: Act, part: Part) -> str:
        launches = [row for row in self.world.rows.operations(part.name, "LAUNCH") if row["ended_at"] is None]
        row = act.chosen(launches)
        return f"cancel operation {row['id']}" if row and self.world.person.cancel(row["id"]) else ""

    def down(self, act: Act, part: Part) -> str:
        self.world.person.down(part.name)
        self.wishes[part.name].up = False
        return f"down {part.name}"

    def up(self, act: Act, part: Part) -> str:
        """The first that is down comes up again; a text makes it what it was."""
        down = [name for name, wish in self.wishes.items() if wish.up is False]
        found = act.chosen(down)
        return self._apply(PARTS[found], self.wishes[found], PARTS[found].first, act.number) if found else ""

    def admin(self, act: Act, part: Part) -> str:
        """Another number, or another text, in the form of Django admin."""
        wish = self.wishes[part.name]
        if wish.up is not True:
            return ""
        target = round(act.between(0, part.most))
        if act.pick < 0.5:
            return self._scaled(part, target, lambda: self._edit(part.name, target=str(target)), "in Django admin")
        text = part.text(target, act.number)
        if not self._edit(part.name, text=text):
            wish.target = None
            return f"admin refuses a text of {part.name}"
        wish.target, wish.change, wish.bad = target, act.number, False
        return f"admin: a new text of {part.name}, {target} replicas"

    def command(self, act: Act, part: Part) -> str:
        """By a management command, which needs neither the web process nor the controller."""
        target = round(act.between(0, part.most))

        def scale() -> bool:
            done = self.world.plane.manage("scale", part.name, str(target), check=False)
            assert done.returncode == 0 or "locked" not in done.stderr, done.stderr
            return done.returncode == 0

        return self._scaled(part, target, scale, "by command")

    def hold(self, act: Act, part: Part) -> str:
        """Requests that take long, of whoever answers them."""
        endpoint = self.world.rows.service("holding")["endpoint"]
        for _ in range(HOLDERS if endpoint else 0):
            threading.Thread(target=_ask, args=(f"{endpoint}/hold",), daemon=True).start()
        return f"{HOLDERS} long requests" if endpoint else ""

    # --- steps ----------------------------------------------------------------------------------------------------

    def _apply(self, part: Part, wish: Wish, target: int, change: int, bad: str = "") -> str:
        self.world.person.apply(part.text(target, change, bad), part.name, known=True)
        wish.target, wish.up, wish.change, wish.bad = target, True, change, False
        return f"apply {part.name}: change {change}{f', bad ({bad})' if bad else ''}, {target} replicas"

    def _scaled(self, part: Part, target: int, scale: Callable[[], bool | None], how: str = "") -> str:
        wish = self.wishes[part.name]
        if wish.up is not True:
            return ""
        if scale() is False:
            wish.target = None
            return f"refused: scale {part.name} {target} {how}"
        wish.target = None if wish.bad else target
        return f"scale {part.name} {target} {how}".rstrip()

    def _turned(self, part: Part, how: str, done: bool) -> str:
        if done:
            self.wishes[part.name].target = None
        return f"{how} {part.name}" if done else ""

    def _rollout(self, name: str) -> Row | None:
        found = self.world.rows.query(
            "SELECT r.* FROM replicas_rollout r JOIN replicas_service s ON s.id = r.service_id"
            " WHERE s.name = ? ORDER BY r.id DESC LIMIT 1",
            name,
        )
        return found[0] if found else None

    def _steer(self, name: str, what: str, **fields: int) -> bool:
        """False when it is refused: there is nothing to steer."""
        answer = self.world.person.post(f"/services/{name}/{what}", **fields)
        assert answer.status_code in (200, 409), f"{what} {name}: {answer.status_code} {answer.text[:300]}"
        return answer.status_code == 200

    def _edit(self, name: str, **changed: str) -> bool:
        """Save the form of Django admin. False when it shows the form again, with what is wrong."""
        person = self.world.person
        path = f"/admin/replicas/service/{self.world.rows.service(name)['id']}/change/"
        page = person.session.get(person.plane.url + path, timeout=20)
        assert page.status_code == 200, f"{path}: {page.status_code} {page.text[:300]}"
        form = Form()
        form.feed(page.text)
        answer = person.post(path, **form.values | changed | {"_save": "Save"})
        assert answer.status_code in (200, 302), f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.status_code == 302


class Form(HTMLParser):
    """The fields of a page's forms, as a browser would post them. `values`: by name."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "input" and name and given.get("type") not in ("submit", "button", "checkbox"):
            self.values[name] = given.get("value", "")
        elif tag in ("textarea", "select") and name:
            self._open = name
            self.values[name] = ""
        elif tag == "option" and self._open and "selected" in given:
            self.values[self._open] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        if tag in ("textarea", "select"):
            self._open = ""

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        if self._open and self.get_starttag_text() and str(self.get_starttag_text()).startswith("<textarea"):
            self.values[self._open] = (self.values[self._open] + data).removeprefix("\n")


def _name(part: Part, row: Row) -> str:
    return f"{part.name} {row['number']}"


def _ask(url: str) -> None:
    with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
