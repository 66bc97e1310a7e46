"""The plain script that launches are held against: starts servers, polls them until all answer, and ends them.

    python benchmarks/plain_launch.py COUNT COMMAND...

Each server is told its port in $PORT. Prints "ready" and the CPU seconds that all of it took when all have answered.
"""

import http.client
import os
import socket
import subprocess
import sys
import time

ROUND_SECONDS = 0.02


def main(count: int, command: list[str]) -> None:
    """Start, poll, say so, end."""
    ports = free_ports(count)
    servers = [
        subprocess.Popen(command, env=os.environ | {"PORT": str(port)}, stdout=subprocess.DEVNULL) for port in ports
    ]
    silent = set(ports)
    while silent:
        silent = {port for port in silent if not answers(port)}
        if silent:
            time.sleep(ROUND_SECONDS)
    print("ready", flush=True)
    for server in servers:
        server.kill()
    for server in servers:
        server.wait()
    spent = os.times()
    print(sum(spent[:4]), flush=True)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def answers(port: int) -> bool:
    """Whether the server of that port says that it is well."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except ConnectionError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
