"""POST a picture, get the text in it as JSON. GET /healthz answers once the models are loaded. Listens on $PORT."""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

from PIL import Image, UnidentifiedImageError
from rapidocr_onnxruntime import RapidOCR

MOST_BYTES = 32 * 1024 * 1024
MOST_PIXELS = 40_000_000  # a small file can hold a picture that fills the memory
SILENCE_SECONDS = 30
# Longest side, in pixels, of the picture in which text is looked for: bounds time and memory for any picture.
LONGEST_SIDE = 960
THREADS = 2


class Handler(BaseHTTPRequestHandler):
    """One connection. The models are shared and used by one request at a time."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS
    reader: RapidOCR
    turn = threading.Lock()

    def do_GET(self) -> None:
        """The probe, and a word on what to do here."""
        if self.path == "/healthz":
            self.answer(200, {"ready": True, "replica": os.environ.get("SKYPILOT_SERVE_REPLICA_ID")})
        else:
            self.answer(404, {"error": "POST a picture to /, for example: curl --data-binary @FILE.png URL"})

    def do_POST(self) -> None:
        """The lines of text in the picture in the body, from top to bottom."""
        body = self.body()
        if body is None:
            return
        fault = unreadable(body)
        if fault:
            self.answer(415, {"error": fault})
            return
        began = time.monotonic()
        with self.turn:
            found, _ = self.reader(body)
        lines = [{"text": text.strip(), "score": round(float(score), 4)} for _, text, score in found or []]
        self.answer(
            200,
            {
                "text": "\n".join(line["text"] for line in lines),
                "lines": lines,
                "seconds": round(time.monotonic() - began, 3),
                "replica": os.environ.get("SKYPILOT_SERVE_REPLICA_ID"),
            },
        )

    def body(self) -> bytes | None:
        """The request's body; None after an answer that says what is wrong with it."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self.refuse(411, "give the picture as a body with a Content-Length")
        elif int(length) > MOST_BYTES:
            self.refuse(413, f"the picture is larger than {MOST_BYTES} bytes")
        else:
            return self.rfile.read(int(length))
        return None

    def refuse(self, status: int, error: str) -> None:
        """Answer without having read the body, so the connection cannot go on."""
        self.close_connection = True
        self.answer(status, {"error": error})

    def answer(self, status: int, value: dict[str, object]) -> None:
        """Send `value` as JSON."""
        data = json.dumps(value, ensure_ascii=False).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def unreadable(body: bytes) -> str | None:
    """Why the body cannot be read as a picture; None if it can."""
    try:
        with Image.open(BytesIO(body)) as picture:
            width, height = picture.size
            if width * height > MOST_PIXELS:
                return f"the picture has {width} x {height} pixels; at most {MOST_PIXELS} in all can be read"
            picture.load()
    except UnidentifiedImageError:
        return "the body is no picture; send a PNG or a JPEG"
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:  # what Pillow raises for bad data
        return f"the body is a picture that cannot be read: {error}"
    return None


def main() -> None:
    """Load the models, then listen: until then the probe finds nobody."""
    began = time.monotonic()
    Handler.reader = RapidOCR(
        det_limit_type="max", det_limit_side_len=LONGEST_SIDE, intra_op_num_threads=THREADS, inter_op_num_threads=1
    )
    port = int(os.environ.get("PORT", "8080"))
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"models loaded in {time.monotonic() - began:.1f} s; listening on port {port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
