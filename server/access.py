"""Who may come in: bearer tokens; or, on a loopback address alone, whoever is on this machine and no web page."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from server.problems import Problem
from server.service import Service

LOCAL = "local"
"""The tenant of everybody where no token is needed."""
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_bearer = HTTPBearer(auto_error=False, description="made with `superopt token create`; not needed on loopback")


async def service_of(request: Request) -> Service:
    return request.app.state.service


Served = Annotated[Service, Depends(service_of)]


async def tenant_of(
    request: Request, served: Served, given: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> str:
    """Whose request it is."""
    if not served.settings.needs_token:
        _refuse_pages(request)
        return LOCAL
    tenant = None if given is None else await run_in_threadpool(served.tokens.tenant_of, given.credentials)
    if tenant is None:
        detail = "a bearer token is needed" if given is None else "the bearer token is not valid"
        raise Problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="superopt"'})
    return tenant


Tenant = Annotated[str, Depends(tenant_of)]


def _refuse_pages(request: Request) -> None:
    """Without tokens a page of any site could have a browser on this machine ask for it."""
    host = request.headers.get("host", "")
    if not _is_loopback(_host_of(f"//{host}")):
        raise Problem(403, "without tokens the service answers to a loopback name alone")
    origin = request.headers.get("origin")
    foreign = origin is not None and origin not in (f"http://{host}", f"https://{host}")
    if request.method in _CHANGING and (foreign or request.headers.get("sec-fetch-site") == "cross-site"):
        raise Problem(403, "a page of another site may not use this service")


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
