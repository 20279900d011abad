"""An app with FastAPI. A user can create ten posts in a minute."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from activities import ACTIVITIES
from fastapi import Depends, FastAPI
from guards import AsyncGuards
from guards.fastapi import install, limit
from log_in import User, user_id

guards = AsyncGuards(activities=ACTIVITIES, on_outage=os.environ.get("GUARDS_ON_OUTAGE", "allow"))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    await guards.ready("create_post")  # a missing permission or a wrong name ends the app here, and not at a user's request
    yield


app = FastAPI(lifespan=lifespan)
install(app)  # answers refused requests
posts: list[str] = []


@app.post("/posts", status_code=201, dependencies=[Depends(limit(guards, "create_post", user_id=user_id))])
async def create_post(user: User) -> dict[str, int]:
    posts.append(user)
    return {"posts": len(posts)}
