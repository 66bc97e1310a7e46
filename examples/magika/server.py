"""POST a file, get its type as JSON. GET /healthz answers once the model is loaded. Listens on $PORT."""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from magika import Magika

MOST_BYTES = 64 * 1024 * 1024
SILENCE_SECONDS = 30


class Handler(BaseHTTPRequestHandler):
    """One connection. The model is shared and used by one request at a time."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS
    model: Magika
    turn = threading.Lock()

    def do_GET(self) -> None:
        """The probe, and a word on what to do here."""
        if self.path == "/healthz":
            self.answer(200, {"ready": True, "replica": os.environ.get("SKYPILOT_SERVE_REPLICA_ID")})
        else:
            self.answer(404, {"error": "POST a file to /, for example: curl --data-binary @FILE URL"})

    def do_POST(self) -> None:
        """The type of the file in the body."""
        body = self.body()
        if body is None:
            return
        began = time.monotonic()
        with self.turn:
            result = self.model.identify_bytes(body)
        kind = result.output
        self.answer(
            200,
            {
                "label": kind.label,
                "description": kind.description,
                "mime_type": kind.mime_type,
                "group": kind.group,
                "score": round(result.score, 4),
                "bytes": len(body),
                "seconds": round(time.monotonic() - began, 4),
                "replica": os.environ.get("SKYPILOT_SERVE_REPLICA_ID"),
            },
        )

    def body(self) -> bytes | None:
        """The request's body; None after an answer that says what is wrong with it."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self.refuse(411, "give the file as a body with a Content-Length")
        elif int(length) > MOST_BYTES:
            self.refuse(413, f"the file is larger than {MOST_BYTES} bytes")
        else:
            return self.rfile.read(int(length))
        return None

    def refuse(self, status: int, error: str) -> None:
        """Answer without having read the body, so the connection cannot go on."""
        self.close_connection = True
        self.answer(status, {"error": error})

    def answer(self, status: int, value: dict[str, object]) -> None:
        """Send `value` as JSON."""
        data = json.dumps(value).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Load the model, then listen: until then the probe finds nobody."""
    began = time.monotonic()
    Handler.model = Magika()
    port = int(os.environ.get("PORT", "8080"))
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"model loaded in {time.monotonic() - began:.1f} s; listening on port {port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
