"""A replica for the gateway's tests: `python -m tests.gateway.origin PORT NAME` answers with what it was asked.

/slow?SECONDS waits first; /hold waits until somebody asks for /release; /events streams one line each tenth of a
second; /wait answers when its client has left, which is too late; /bytes?COUNT counts its body, without a digest, and
answers with so many bytes; /trailers and /gzip answer in those ways; /ws is a WebSocket that echoes. GET /seen tells
how often each path was asked for, /open how many streams and waits are open, and /cut how many bodies ended too early.
"""

import asyncio
import base64
import contextlib
import gzip
import hashlib
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator

seen: Counter[str] = Counter()
streams = 0
cut = 0
released = asyncio.Event()
ZIPPED = gzip.compress(b"as it is" * 1000, mtime=0)
Writer = asyncio.StreamWriter


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 20)
    async with server:
        await server.serve_forever()


async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
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
    path, _, query = target.partition("?")
    if path == "/bytes":
        return await count(reader, writer, int(headers["content-length"]), int(query))
    length, digest, trailers = await take(reader, headers)
    if path == "/events":
        return await events(writer)
    if path == "/slow":
        await asyncio.sleep(float(query or 1))
    if path == "/hold":
        await released.wait()
    if path == "/release":
        released.set()
    if path == "/break":
        return False
    if path == "/wait":
        return await wait(reader)
    asked = {"method": method, "path": target, "headers": headers, "body": length}
    body: object = {"name": sys.argv[2], **asked, "digest": digest, "trailers": trailers}
    if path == "/seen":
        body = dict(seen)
    if path == "/open":
        body = streams
    if path == "/cut":
        body = cut
    if path in ANSWERS:
        writer.write(ANSWERS[path])
        await writer.drain()
        return True
    answer(writer, method, json.dumps(body).encode())
    await writer.drain()
    return True


async def take(reader: asyncio.StreamReader, headers: dict[str, str]) -> tuple[int, str, dict[str, str]]:
    """Read the body: its length, the SHA-256 of it, and its trailers."""
    global cut
    total, digest, trailers = 0, hashlib.sha256(), {}
    try:
        async for part in parts(reader, headers):
            total += len(part)
            digest.update(part)
        if headers.get("transfer-encoding") == "chunked":
            while line := (await reader.readline()).strip().decode():
                name, _, value = line.partition(":")
                trailers[name.lower()] = value.strip()
    except (asyncio.IncompleteReadError, ConnectionError):
        cut += 1
        raise
    return total, digest.hexdigest(), trailers


async def parts(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    """The body as it comes."""
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield (await reader.readexactly(size + 2))[:-2]
        return
    left = int(headers.get("content-length", "0"))
    while left:
        part = await reader.readexactly(min(left, 65536))
        left -= len(part)
        yield part


async def count(reader: asyncio.StreamReader, writer: Writer, length: int, wanted: int) -> bool:
    """A body that is too large to be kept, and another one back; X-Counted tells how much came."""
    came = 0
    while came < length and (part := await reader.read(1 << 20)):
        came += len(part)
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {wanted}\r\nX-Counted: {came}\r\n\r\n".encode())
    part = bytes(1 << 20)
    while wanted:
        writer.write(part[:wanted])
        wanted -= len(part[:wanted])
        await writer.drain()
    return False


async def wait(reader: asyncio.StreamReader) -> bool:
    """Until the client has left."""
    global streams
    streams += 1
    try:
        await asyncio.wait_for(reader.read(1), 60)
    finally:
        streams -= 1
    return False


def answer(writer: Writer, method: str, data: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    writer.write(head if method == "HEAD" else head + data)


ANSWERS = {
    "/trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Digest\r\n\r\n"
    b"5\r\nhello\r\n0\r\nX-Digest: of-the-body\r\n\r\n",
    "/gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED,
}


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
