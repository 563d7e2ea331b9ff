"""connect() and aconnect(): settings to a client. Neither opens a connection; the first call
does."""

from __future__ import annotations

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.settings import resolve


def connect(
    url: str | None = None,
    *,
    bootstrap: str | list[str] | None = None,
    api_url: str | None = None,
    key: str | None = None,
    project: str | None = None,
    profile: str | None = None,
) -> Client:
    """A sync client. What is not given comes from HEADRACE_URL, HEADRACE_BOOTSTRAP,
    HEADRACE_API_URL, HEADRACE_KEY, then from the profile file, then it is the address of a local
    `headrace up`."""
    return Client(
        resolve(
            url, bootstrap=bootstrap, api_url=api_url, key=key, project=project, profile=profile
        )
    )


def aconnect(
    url: str | None = None,
    *,
    bootstrap: str | list[str] | None = None,
    api_url: str | None = None,
    key: str | None = None,
    project: str | None = None,
    profile: str | None = None,
) -> AsyncClient:
    """An async client; use it with `async with`, or `await` it and close it yourself. Same
    arguments as connect()."""
    return AsyncClient(
        resolve(
            url, bootstrap=bootstrap, api_url=api_url, key=key, project=project, profile=profile
        )
    )
