"""Our own settings, read from ROLLCALL_* variables and checked once, at the start of each process."""

import difflib
import hashlib
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PREFIX = "ROLLCALL_"
DEFAULT_HOME = Path(__file__).resolve().parent.parent / "var"

# A unix socket's path holds 107 bytes; what remains must do for the longest name of a socket in the directory.
SOCKET_PATH_BYTES = 107
SOCKET_NAME_BYTES = 40

# Variables with our prefix that are read elsewhere: by the supervisor's children, by `up`, by replicas, by the tests.
ELSEWHERE = frozenset(
    (
        "HOME",
        "PROCESS",
        "HOST",
        "PORT",
        "CI",
        "STATIC_ROOT",
        "SECRET_KEY",
        "ADMIN_USER",
        "ADMIN_PASSWORD",
        "REPLICA_UID",
        "SHIM_UID",
    )
)


class ConfigError(Exception):
    """A ROLLCALL_* variable is wrong. The message names the variable, its value and what is right."""


def setting(default: Any, help: str, *, least: float = 0, most: float | None = None) -> Any:
    """A field of Config with its bounds (both included) and the sentence that explains it to the operator."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


@dataclass(frozen=True, slots=True)
class Config:
    """What an operator can set. Field `max_launches` is the variable ROLLCALL_MAX_LAUNCHES, and so on.

    `home` holds everything that this installation writes. Times are in the unit that the name ends in.
    """

    home: Path
    max_launches: int = setting(32, "Launches in flight, over all services.", least=1, most=1000)
    max_launches_per_service: int = setting(16, "Launches in flight of one service.", least=1, most=1000)
    max_downs: int = setting(32, "Downs in flight, over all services.", least=1, most=1000)
    launch_attempts: int = setting(3, "A launch is tried this often.", least=1, most=100)
    launch_retry_seconds: float = setting(5.0, "Before the second attempt; then 1.6 times as long, up to 300.", least=0)
    down_attempts: int = setting(3, "A down is tried this often.", least=1, most=100)
    down_retry_seconds: float = setting(5.0, "Between attempts at a down.", least=0)
    lease_seconds: float = setting(5.0, "A second controller takes over after this much silence.", least=1, most=300)
    stale_seconds: float = setting(8.0, "A worker that is silent for so long lost its operation.", least=1, most=600)
    redeliver_seconds: float = setting(5.0, "An operation nobody took up is handed over again.", least=0.5, most=600)
    long_workers: int = setting(4, "Workers of the pool for launches and downs.", least=1, most=64)
    short_workers: int = setting(2, "Workers of the pool for probes and quick work.", least=2, most=65)
    probe_shards: int = setting(1, "Probe jobs that share the replicas; each holds one short worker.", least=1, most=64)
    tick_seconds: float = setting(1.0, "The controller looks at everything at least this often.", least=0.05, most=60)
    prune_days: float = setting(7.0, "Ended replicas, operations and their logs are kept this long.", least=0)
    replica_port_first: int = setting(20000, "First port that replicas on this host may get.", least=1024, most=65535)
    replica_port_last: int = setting(32000, "Last port that replicas on this host may get.", least=1024, most=65535)
    gateway: bool = setting(True, "Serve each service at an address of its own, by HAProxy.")
    gateway_host: str = setting("127.0.0.1", "Where the addresses of services listen; 0.0.0.0 for all of the network.")
    gateway_port: int = setting(8800, "One port for all services, by Host or /services/NAME/; 0 for none.", most=65535)
    gateway_connections: int = setting(4000, "Connections that the gateway takes at a time.", least=10, most=1000000)
    metrics_token: str = setting("", "Bearer token with which /metrics may be read from other machines.")
    endpoint_port_first: int = setting(18000, "First port that a service's address may get.", least=1024, most=65535)
    endpoint_port_last: int = setting(18999, "Last port that a service's address may get.", least=1024, most=65535)
    notice_group_seconds: float = setting(10.0, "What happens within so long is told in one notice.", most=3600)
    notices_per_hour: int = setting(
        20, "Notices that a channel gets in an hour, beyond the first three.", least=1, most=3600
    )
    notice_send_seconds: float = setting(5.0, "Sending one notice may take so long.", least=1, most=30)
    notice_attempts: int = setting(8, "A notice is tried this often, within two hours.", least=1, most=20)
    notice_link_local: bool = setting(
        False, "Notices may go to addresses of the link (169.254.0.0/16, fe80::/10) and of a cloud's metadata."
    )
    crash_loop_failures: int = setting(5, "So many failed replicas of a service are a crash loop.", least=2, most=1000)
    crash_loop_seconds: float = setting(600.0, "Within this time; when none fails for so long it is over.", least=1)
    public_url: str = setting(
        "", "Where people reach the dashboard, such as https://rollcall.example.org; notices link to it."
    )
    allowed_hosts: tuple[str, ...] = setting((), "Host names, by comma, under which the dashboard may be asked for.")
    trusted_proxies: tuple[str, ...] = setting(
        (), "Addresses or networks, by comma, of proxies whose X-Forwarded-For and -Proto are believed."
    )
    https: bool = setting(False, "The dashboard is behind HTTPS: cookies are sent over HTTPS only.")
    debug: bool = setting(False, "Django's debug pages. Never on a machine that others can reach.")
    log_level: str = setting("INFO", "DEBUG, INFO, WARNING or ERROR.")
    cluster: str = setting("", "Name that the pools share; needed where several hosts share one database.")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Config":
        """The settings that the environment gives. Raises ConfigError."""
        values: dict[str, Any] = {}
        for each in fields(cls):
            text = environ.get(PREFIX + each.name.upper(), "").strip()
            if each.name == "home":
                values["home"] = Path(os.path.abspath(Path(text).expanduser())) if text else DEFAULT_HOME
            elif text:
                values[each.name] = _read(PREFIX + each.name.upper(), text, each.default, each.metadata)
        config = cls(**values)
        if config.replica_port_first > config.replica_port_last:
            raise ConfigError(
                f"ROLLCALL_REPLICA_PORT_FIRST={config.replica_port_first} is above "
                f"ROLLCALL_REPLICA_PORT_LAST={config.replica_port_last}: swap them."
            )
        if config.endpoint_port_first > config.endpoint_port_last:
            raise ConfigError(
                f"ROLLCALL_ENDPOINT_PORT_FIRST={config.endpoint_port_first} is above "
                f"ROLLCALL_ENDPOINT_PORT_LAST={config.endpoint_port_last}: swap them."
            )
        if config.probe_shards >= config.short_workers:
            raise ConfigError(
                f"ROLLCALL_PROBE_SHARDS={config.probe_shards} leaves none of ROLLCALL_SHORT_WORKERS="
                f"{config.short_workers} for other work: set the workers to {config.probe_shards + 1} or more."
            )
        for proxy in config.trusted_proxies:
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ConfigError(
                    f"ROLLCALL_TRUSTED_PROXIES={proxy!r} is neither an address nor a network: "
                    "write 10.0.0.5 or 10.0.0.0/8."
                ) from None
        return config

    @property
    def run(self) -> Path:
        """Pid file, lock, beats and sockets: what only means something while the control plane runs.

        It is `<home>/run`, or a short directory of this home's own (to which `<home>/run` is then a link) when sockets
        in it would get too long a path. $XDG_RUNTIME_DIR is of no use: a command in another login must find the same.
        """
        usual = self.home / "run"
        if len(os.fsencode(usual)) + 1 + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES:
            return usual
        return Path("/tmp") / f"rollcall-{self.digest}"  # noqa: S108  (mode 0700, refused if it is another's)

    @property
    def logs(self) -> Path:
        """Logs of operations and of the control plane."""
        return self.home / "logs"

    @property
    def digest(self) -> str:
        """Twelve hex digits that tell this home from others."""
        return hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]

    @property
    def cluster_name(self) -> str:
        """The name that the pools share; it salts the signature of their messages."""
        return self.cluster or f"rollcall-{self.digest}"


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Each ROLLCALL_* variable that nothing reads, with the nearest right one ("" if none is near)."""
    known = sorted({each.name.upper() for each in fields(Config)} | ELSEWHERE)
    found = {}
    for name in environ:
        short = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and short not in known:
            near = difflib.get_close_matches(short, known, n=1)
            found[name] = PREFIX + near[0] if near else ""
    return found


def _read(variable: str, text: str, default: Any, limits: Mapping[str, Any]) -> Any:
    """The value that `text` gives a setting of the type of `default`. Raises ConfigError."""
    if isinstance(default, bool):
        return _boolean(variable, text)
    if isinstance(default, (int, float)):
        return _number(variable, text, type(default), limits["least"], limits["most"])
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    form = FORMS.get(variable.removeprefix(PREFIX))
    return form(variable, text) if form else text


def _level(variable: str, text: str) -> str:
    if text.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ConfigError(f"{variable}={text!r} is not a level: use DEBUG, INFO, WARNING or ERROR.")
    return text.upper()


def _web_address(variable: str, text: str) -> str:
    if not text:
        return text
    try:
        parts = urlsplit(text)
        named = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, named = urlsplit(""), False
    plain = text.isprintable() and " " not in text and "@" not in parts.netloc and not parts.query + parts.fragment
    if not named or parts.scheme not in {"http", "https"} or not plain:
        raise ConfigError(f"{variable}={text!r} is no address of the web: write https://HOST, with a path if need be.")
    return text


FORMS = {"LOG_LEVEL": _level, "PUBLIC_URL": _web_address}  # texts that are not free


def _boolean(variable: str, text: str) -> bool:
    if text.lower() in {"1", "true", "yes", "on"}:
        return True
    if text.lower() in {"0", "false", "no", "off"}:
        return False
    raise ConfigError(f"{variable}={text!r} is neither yes nor no: use 1 or 0.")


def _number(variable: str, text: str, kind: Callable[[str], Any], least: float, most: float | None) -> Any:
    word = "a whole number" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError:
        raise ConfigError(f"{variable}={text!r} is not {word}.") from None
    if not value >= least or (most is not None and value > most):
        bounds = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        raise ConfigError(f"{variable}={text} is out of bounds: use {word} {bounds}.")
    return value
