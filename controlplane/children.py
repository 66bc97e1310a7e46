"""The table of children: what `up` runs beside the supervisor, and how each is told to be alive."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.vigil import DELAYS, SETTLED_SECONDS
from replicas.config import Config
from replicas.gateway.binary import find
from replicas.gateway.places import Places

# Where a child that answers the network finds the listening socket.
LISTENER = 3


@dataclass(frozen=True, slots=True)
class Child:
    """One program of the control plane.

    `beat` names the file (in the run directory) whose time changes while the child works; "" means that only its
    exit tells. `delays`: seconds before it is started again, after one death soon after its start, two, and so on;
    who lived for `settled` seconds is started again at once.
    `after` names the child without whose work no beat can be expected. `listens`: gets the socket. `grace`: seconds
    that it may take to stop. `last`: it is asked to stop when those that are not `last` have ended. The longest grace
    of these and the longest of those must leave room in the ten seconds that are promised.
    """

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    beat: str = ""
    after: str = ""
    listens: bool = False
    grace: float = 7.5
    last: bool = False
    delays: tuple[float, ...] = DELAYS
    settled: float = SETTLED_SECONDS


def table(base: Path) -> tuple[Child, ...]:
    """The children of a control plane whose code is in `base`."""
    python, manage = sys.executable, str(base / "manage.py")
    web = [python, "-m", "uvicorn", "controlplane.asgi:application", "--fd", str(LISTENER)]
    web += [
        "--http",
        "httptools",
        "--ws",
        "controlplane.handshake:Protocol",
        "--ws-max-size",
        "1048576",
        "--lifespan",
        "on",
    ]
    # A dead browser is noticed within 20 s. Compression would cost a share of a core per hundred readers of logs.
    web += ["--ws-ping-interval", "8", "--ws-ping-timeout", "10", "--ws-per-message-deflate", "false"]
    web += ["--no-access-log", "--no-server-header", "--log-level", "warning", "--timeout-graceful-shutdown", "4"]
    proxies = ",".join(Config.from_env(os.environ).trusted_proxies)  # anybody else's word on who asks is not believed
    web += ["--proxy-headers", "--forwarded-allow-ips", proxies] if proxies else ["--no-proxy-headers"]
    return (
        Child("web", tuple(web), {"ROLLCALL_PROCESS": "web"}, beat="beat-web", listens=True),
        *gateway(python),
        pool(python, manage, "long", grace=7.5),
        pool(python, manage, "short", grace=2.0),  # a probe job goes on for minutes, and loses nothing by being killed
        Child(
            "controller",
            (python, manage, "controller", "--skip-checks"),  # they load every page of the dashboard, and were done
            {"ROLLCALL_PROCESS": "controller"},
            beat="beat-controller",
            settled=10.0,
        ),
    )


def gateway(python: str) -> tuple[Child, ...]:
    """HAProxy, which the controller drives over its sockets; none where it is switched off or there is no binary."""
    config, binary = Config.from_env(os.environ), find(os.environ).path
    if not config.gateway or not binary:
        return ()
    return (
        Child(
            "gateway",
            Places.of(config).start(python, binary),
            {"ROLLCALL_PROCESS": "gateway"},
            beat="beat-gateway",
            after="controller",
            grace=2.0,
            last=True,  # requests are served while the others end
            delays=(0.0, 0.0, 0.2, 0.2, 0.2, 0.5, 0.5, 1.0, 2.0, 5.0),  # all traffic waits for it
            settled=5.0,
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
