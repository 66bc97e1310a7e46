"""A replica for the gateway's tests: `python -m tests.gateway.origin PORT NAME` answers with what it was asked.

/slow?SECONDS waits first; /events streams one line each tenth of a second; /echo sends the body back; /ws is a
WebSocket that echoes. GET /seen tells how often each path was asked for, and /open how many streams are open.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import sys
from collections import Counter

seen: Counter[str] = Counter()
streams = 0
Writer = asyncio.StreamWriter


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await one(reader, writer):
            pass
    writer.close()


async def one(reader: asyncio.StreamReader, writer: Writer) -> bool:
    """One request; False to end the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    seen[f"{method} {target}"] += 1
    if target == "/ws":
        return await websocket(headers, reader, writer)
    length = await skip(reader, headers)
    path, _, query = target.partition("?")
    if path == "/events":
        return await events(writer)
    if path == "/slow":
        await asyncio.sleep(float(query or 1))
    if path == "/break":
        return False
    body: object = {"name": sys.argv[2], "method": method, "path": target, "headers": headers, "body": length}
    if path == "/seen":
        body = dict(seen)
    if path == "/open":
        body = streams
    answer(writer, method, json.dumps(body).encode())
    await writer.drain()
    return True


async def skip(reader: asyncio.StreamReader, headers: dict[str, str]) -> int:
    """Read the body; its length."""
    if headers.get("transfer-encoding") == "chunked":
        total = 0
        while size := int((await reader.readline()).split(b";")[0], 16):
            total += size
            await reader.readexactly(size + 2)
        while (await reader.readline()).strip():
            pass
        return total
    left = total = int(headers.get("content-length", "0"))
    while left:
        left -= len(await reader.readexactly(min(left, 65536)))
    return total


def answer(writer: Writer, method: str, data: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    writer.write(head if method == "HEAD" else head + data)


async def events(writer: Writer) -> bool:
    global streams
    streams += 1
    try:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number in range(600):
            writer.write(f"data: {number}\n\n".encode())
            await writer.drain()
            await asyncio.sleep(0.1)
    finally:
        streams -= 1
    return False


async def websocket(headers: dict[str, str], reader: asyncio.StreamReader, writer: Writer) -> bool:
    key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    writer.write(f"{head}Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while frame := await reader.readexactly(2):
        mask, data = await reader.readexactly(4), await reader.readexactly(frame[1] & 0x7F)
        plain = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        writer.write(bytes([0x80 | (frame[0] & 0x0F), len(plain)]) + plain)
        await writer.drain()
        if frame[0] & 0x0F == 8:
            return False
    return False


if __name__ == "__main__":
    asyncio.run(main())
