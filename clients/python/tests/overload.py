"""A guard in a process of its own, which can answer many requests at once. Usage: python overload.py SECONDS

It admits ten actions of each user, and a repeated request once. It prints its port.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter

LIMIT = 10


class Guard:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.used: Counter[str] = Counter()
        self.decided: dict[str, bool] = {}

    def decide(self, user: str, request: str) -> bool:
        if request not in self.decided:
            self.decided[request] = self.used[user] < LIMIT
            self.used[user] += self.decided[request]
        return self.decided[request]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                assert length
                asked = json.loads(await reader.readexactly(int(length[1])))
                await asyncio.sleep(self.seconds)
                allowed = self.decide(asked["userId"], asked["requestId"])
                echo = {"userId": asked["userId"], "requestId": asked["requestId"]}
                body = json.dumps({"allowed": allowed, "reason": "ok" if allowed else "limited", **echo}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()


async def main() -> None:
    server = await asyncio.start_server(Guard(float(sys.argv[1])).serve, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
