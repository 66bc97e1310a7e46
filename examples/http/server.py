"""A small HTTP service: answers / with who it is and /healthz with ok, and prints a line for each request."""

import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLICA = os.environ.get("SKYPILOT_SERVE_REPLICA_ID", "?")
GREETING = os.environ.get("GREETING", "hello")
STARTED = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, "ok\n")
        elif self.path == "/":
            self._answer(200, f"{GREETING} from replica {REPLICA}, up {time.monotonic() - STARTED:.0f} s\n")
        else:
            self._answer(404, f"nothing at {self.path}\n")

    do_HEAD = do_GET

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        print(f"{self.log_date_time_string()} {self.address_string()} {format % args}", flush=True)


def main() -> None:
    port = int(os.environ.get("PORT", "8080"))
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"replica {REPLICA} listens on port {port}", flush=True)
    server.serve_forever()
    print("stopped", flush=True)


if __name__ == "__main__":
    sys.exit(main())
