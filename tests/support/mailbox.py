"""A mail server on a real socket: takes what it gets, from one user with one password (RFC 5321, RFC 4954)."""

import base64
import socketserver
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage

USER, PASSWORD = "rollcall", "s3cret"


class Mailbox:
    """`mails` are what came, and `place` is where it listens."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.say("220 mail.example ready")
                while line := self.rfile.readline().decode().strip():
                    verb, _, rest = line.partition(" ")
                    self.say(self.answer(verb.upper(), rest))
                    if verb.upper() == "QUIT":
                        return

            def say(self, text: str) -> None:
                self.wfile.write(text.encode() + b"\r\n")

            def answer(self, verb: str, rest: str) -> str:
                if verb == "EHLO":
                    return "250-mail.example\r\n250 AUTH PLAIN LOGIN"
                if verb == "AUTH":
                    right = base64.b64encode(f"\0{USER}\0{PASSWORD}".encode()).decode()
                    return "235 welcome" if rest == f"PLAIN {right}" else "535 wrong password"
                if verb == "DATA":
                    self.say("354 go on")
                    lines = list(iter(self.rfile.readline, b".\r\n"))
                    mail = b"".join(line.removeprefix(b".") for line in lines)
                    outer.mails.append(message_from_bytes(mail, policy=policy.default))
                return "221 bye" if verb == "QUIT" else "250 ok"

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
