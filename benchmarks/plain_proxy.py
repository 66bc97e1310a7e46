"""A reverse proxy of aiohttp, to hold the gateway against: `python -m benchmarks.plain_proxy URL...`

Prints its address. As plain as such a proxy is usually written: one session, replicas in turn, the answer streamed.
"""

import asyncio
import itertools
import sys

from aiohttp import ClientSession, TCPConnector, web

HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "host"}


async def main() -> None:
    turns = itertools.cycle(sys.argv[1:])
    async with ClientSession(connector=TCPConnector(limit=0), auto_decompress=False) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
            body = request.content if request.can_read_body else None
            url = next(turns) + request.path_qs
            async with session.request(request.method, url, headers=headers, data=body, allow_redirects=False) as found:
                kept = {name: value for name, value in found.headers.items() if name.lower() not in HOP}
                answer = web.StreamResponse(status=found.status, headers=kept)
                if found.content_length is not None:
                    answer.content_length = found.content_length
                await answer.prepare(request)
                async for part in found.content.iter_any():
                    await answer.write(part)
                await answer.write_eof()
                return answer

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        print(f"http://{host}:{port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
