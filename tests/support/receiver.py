"""A receiver of webhooks on a real socket: keeps what it gets, and answers as it is told."""

import http.server
import json
import threading
from typing import Any


class Receiver:
    """`got`: the (headers, body) of each POST. `status` is the next answers'; `delay` seconds come before each."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.delay = 0.0
        self.body = b""
        self.ended = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                outer.ended.wait(outer.delay)
                try:
                    self.send_response(outer.status)
                    self.send_header("Location", f"{outer.url}elsewhere")
                    self.end_headers()
                    self.wfile.write(outer.body)
                except OSError:
                    pass  # it did not wait so long

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook/s3cret-path?key=s3cret-key"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """What was posted, as JSON."""
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        """Stop it."""
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
