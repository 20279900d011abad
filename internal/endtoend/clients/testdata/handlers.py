"""Calls the handler in a file for each event of stdin, a line each, and writes a line with what the platform gets.

That is the result of a Lambda function as JSON, its error, or what an ASGI app sends over its WebSocket.
"""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

program = Path(sys.argv[1])
sys.path.insert(0, str(program.parent))  # has activities.py
spec = importlib.util.spec_from_file_location("program", program)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


async def over_websocket(event):
    """Open a WebSocket, send one text, and return the answer to it."""
    received = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": event["text"]}, {"type": "websocket.disconnect", "code": 1000}]
    sent = []

    async def receive():
        return received.pop(0)

    async def send(message):
        sent.append(message)

    headers = [(b"authorization", b"Bearer " + event["user"].encode())]
    scope = {"type": "websocket", "path": "/messages", "query_string": b"", "headers": headers, "subprotocols": []}
    await module.app(scope, receive, send)
    return [json.loads(message["text"]) for message in sent if message["type"] == "websocket.send"][0]


async def answer(event):
    return await over_websocket(event) if hasattr(module, "app") else module.handler(event, None)


async def main():
    for line in sys.stdin:
        try:
            outcome = {"result": await answer(json.loads(line))}
        except Exception as error:
            outcome = {"errorType": type(error).__name__, "errorMessage": str(error)}
        print(json.dumps(outcome))


asyncio.run(main())
