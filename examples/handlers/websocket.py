"""A WebSocket of FastAPI. Each message is checked, and a refusal is a message, too."""

from activities import ACTIVITIES
from fastapi import FastAPI, WebSocket
from guards import AsyncGuards

guards = AsyncGuards(activities=ACTIVITIES)
app = FastAPI()


@app.websocket("/messages")
async def messages(socket: WebSocket) -> None:
    user = log_in(socket)
    await socket.accept()
    async for text in socket.iter_text():
        decision = await guards.check("send_message", user_id=user)
        if decision.allowed:
            await socket.send_json({"sent": text})  # send the message to the others
        else:
            await socket.send_json({"refused": decision.message, "waitTime": decision.wait_time})


def log_in(socket: WebSocket) -> str:
    """Stand for your log-in. It believes every name, so don't copy it."""
    return socket.headers["Authorization"].removeprefix("Bearer ")
