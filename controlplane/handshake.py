"""The websocket protocol of the web process: uvicorn's, which leaves a handshake without an answer that it cannot read.

`websockets` refuses a request line or a header of more than 8 KiB, such as a browser's with very many cookies, and has
the answer ready; uvicorn (0.54) does not send it, and the connection would stay open until its client gives up.
"""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

UNREADABLE = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Protocol(WebSocketsSansIOProtocol):
    """Answers each handshake, and lets go of what it refuses."""

    def data_received(self, data: bytes) -> None:
        """The request, and later what the client says."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(b"".join(self.conn.data_to_send()) or UNREADABLE)
            self.transport.close()
