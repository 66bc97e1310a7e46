"""The process between the control plane and one command: it outlives the first and ends the whole tree of the second.

Run as `python -I -S -E shim.py CONTROL_DIRECTORY`, with its order on standard input. It is plain standard library and
loads little of that: there is one for each replica.

Order: fields `name=value`, each ended by a NUL, the last one `end=`. A launcher that dies while it writes leaves no
`end`, and then nothing is started. Fields: arg (repeated), env (repeated), cwd, secret (repeated), log, segment_bytes,
segments, line_bytes, grace (seconds), cgroup (repeated: a directory that the command joins), limit (repeated:
`file=value`), release (a descriptor to close once the command runs). Secrets come this way because anyone's
environment can be read.

Files in the control directory: `lock` (a POSIX lock, held for life: free means that no shim is there), `shim` (pid,
start time, the command's pid and start time), `exit` (JSON, see `record`), `stop` (made by others before they send
SIGTERM: seconds of grace), `shim.err` (what went wrong in here). On standard output the line of `shim` says that the
command runs.
"""

import os
import sys

# The package's own directory is not on the path of an isolated interpreter. What is loaded from it are parts of the
# shim.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from replicas.providers.shim_run import main

if __name__ == "__main__":
    main(os.fsencode(sys.argv[1]))
