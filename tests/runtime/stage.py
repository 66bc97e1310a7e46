"""A supervisor over children from a table, as a process of its own: `python -m tests.runtime.stage DIRECTORY`.

DIRECTORY holds `table.json`: a list of {name, code (Python), beat, after, grace, last}. Patience can be shortened there
too.
"""

import json
import signal
import socket
import sys
from pathlib import Path

from controlplane import vigil
from controlplane.children import Child
from controlplane.output import LogFile, Output, Terminal
from controlplane.supervisor import Supervisor, ensure_standard_descriptors


def main() -> int:
    """Run it."""
    directory = Path(sys.argv[1])
    play = json.loads((directory / "table.json").read_text())
    for name, value in play.get("vigil", {}).items():
        setattr(vigil, name, value)
    children = tuple(
        Child(
            part["name"],
            (sys.executable, "-c", part["code"]),
            {"PART": part["name"]},
            beat=part.get("beat", ""),
            after=part.get("after", ""),
            grace=part.get("grace", 5.0),
            last=part.get("last", False),
        )
        for part in play["children"]
    )
    ensure_standard_descriptors()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have had it ignored, as nohup does
    output = Output(Terminal(), LogFile(directory / "control-plane.log"), [child.name for child in children])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        supervisor = Supervisor(
            children, listener=listener.fileno(), run=directory, home=directory, output=output, url="http://test"
        )
        return supervisor.run()


if __name__ == "__main__":
    raise SystemExit(main())
