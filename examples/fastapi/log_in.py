"""This stands for your app's log-in. It believes every name, so don't copy it."""

from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer


def user_id(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    return credentials.credentials


User = Annotated[str, Depends(user_id)]
