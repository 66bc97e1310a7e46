"""Services for these tests: small servers in plain Python that start in a few hundredths of a second.

Somebody may connect and say nothing: the gateway does, to see whether anybody listens.
"""

SERVER = """\
import os, socket, sys, time
time.sleep(float(os.environ.get("START_SECONDS", "0")))
server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=64)
print("listening", flush=True)
began = time.monotonic()
server.settimeout(0.5)
while True:
    if time.monotonic() - began > float(os.environ.get("LIFE_SECONDS", "inf")):
        print("enough of this life", flush=True)
        sys.exit(int(os.environ.get("EXIT_CODE", "7")))
    try:
        connection, _ = server.accept()
    except TimeoutError:
        continue
    with connection:
        connection.settimeout(2)
        try:
            if connection.recv(4096):
                healthy = time.monotonic() - began < float(os.environ.get("HEALTHY_SECONDS", "inf"))
                status = b"200 OK" if healthy else b"503 Sick"
                head = b"HTTP/1.1 " + status + b"\\r\\nContent-Length: 3\\r\\nConnection: close\\r\\n\\r\\n"
                connection.sendall(head + b"ok\\n")
        except OSError:
            pass
"""


def service(
    name: str,
    replicas: int = 2,
    *,
    run: str | None = None,
    setup: str | None = None,
    env: dict[str, str] | None = None,
    head: str = "",
    tail: str = "",
    drain: float = 2,
    interval: float = 1,
    initial_delay: float = 60,
    threshold: float = 30,
    surge: int = 0,
    unavailable: int = 1,
    min_ready: float = 0,
) -> str:
    """The YAML of a service. `head` is put among the top keys, `tail` into the section `service`.

    By default an update takes one away before it adds one, so that there are never more live ones than wanted.
    """
    lines = [f"name: {name}"]
    if head:
        lines += head.rstrip().splitlines()
    if env:
        lines += ["envs:", *(f'  {key}: "{value}"' for key, value in env.items())]
    if setup is not None:
        lines += ["setup: |", *indented(setup)]
    lines += ["run: |", *indented(run if run is not None else f"exec python3 -S -E -c '{SERVER}'")]
    lines += [
        "service:",
        f"  replicas: {replicas}",
        f"  drain_seconds: {drain:g}",
        "  readiness_probe:",
        "    path: /",
        f"    initial_delay_seconds: {initial_delay:g}",
        "    timeout_seconds: 5",
        f"    endpoint_probe_interval_seconds: {interval:g}",
        f"    consecutive_failure_threshold_timeout: {threshold:g}",
        f"  rollout: {{max_surge: {surge}, max_unavailable: {unavailable}, min_ready_seconds: {min_ready:g}}}",
    ]
    lines += [f"  {line}" for line in tail.rstrip().splitlines()] if tail else []
    return "\n".join(lines) + "\n"


def indented(text: str) -> list[str]:
    """The lines of a block."""
    return [f"  {line}" for line in text.rstrip().splitlines()]
