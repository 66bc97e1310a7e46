"""The table of children: what `up` runs beside the supervisor, and how each is told to be alive."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

# Where a child that answers the network finds the listening socket.
LISTENER = 3


@dataclass(frozen=True, slots=True)
class Child:
    """One program of the control plane.

    `beat` names the file (in the run directory) whose time changes while the child works; "" means that only its
    exit tells. `after` names the child without whose work no beat can be expected. `listens`: gets the socket.
    `grace`: seconds that it may take to stop. All of them together must leave room in the ten that are promised.
    """

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    beat: str = ""
    after: str = ""
    listens: bool = False
    grace: float = 7.5


def table(base: Path) -> tuple[Child, ...]:
    """The children of a control plane whose code is in `base`."""
    python, manage = sys.executable, str(base / "manage.py")
    web = [python, "-m", "uvicorn", "controlplane.asgi:application", "--fd", str(LISTENER)]
    web += ["--http", "httptools", "--ws", "websockets-sansio", "--ws-max-size", "1048576", "--lifespan", "on"]
    # A dead browser is noticed within 20 s. Compression would cost a share of a core per hundred readers of logs.
    web += ["--ws-ping-interval", "8", "--ws-ping-timeout", "10", "--ws-per-message-deflate", "false"]
    web += ["--no-access-log", "--no-server-header", "--log-level", "warning", "--timeout-graceful-shutdown", "4"]
    return (
        Child("web", tuple(web), {"ROLLCALL_PROCESS": "web"}, beat="beat-web", listens=True),
        pool(python, manage, "long", grace=7.5),
        pool(python, manage, "short", grace=2.0),  # a probe job goes on for minutes, and loses nothing by being killed
        Child(
            "controller",
            (python, manage, "controller", "--skip-checks"),  # they load every page of the dashboard, and were done
            {"ROLLCALL_PROCESS": "controller"},
            beat="beat-controller",
        ),
    )


def pool(python: str, manage: str, lane: str, grace: float) -> Child:
    """A django-q2 pool, which takes its name from the environment; its beat is a job that the controller sends."""
    return Child(
        lane,
        (python, manage, "qcluster", "--skip-checks"),
        {"ROLLCALL_PROCESS": "pool", "Q_CLUSTER_NAME": lane},
        beat=f"beat-{lane}",
        after="controller",
        grace=grace,
    )
