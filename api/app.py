"""Builds the ASGI application: routes, the middleware around them, and workers inside when
they belong there."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute

from api.api_keys.routes import router as access
from api.audit.routes import router as audit
from api.auth.rate import Limits, Policy
from api.clusters.routes import router as clusters
from api.db.database import Database
from api.db.schema import SchemaError, check_schema
from api.explain.routes import router as explain
from api.groups.routes import router as groups
from api.holds.routes import router as holds
from api.http import contract, middleware
from api.http.console_files import assets
from api.http.console_files import pages as console
from api.invoices.routes import router as invoices
from api.live.poller import Poller
from api.live.routes import router as live
from api.messages.routes import router as messages
from api.messages.tail import Tails
from api.node.metrics import MEDIA_TYPE, metrics_text
from api.node.pool import NodePool
from api.nodes.routes import router as nodes
from api.operations.routes import router as operations
from api.organizations.routes import router as organizations
from api.projects.routes import router as projects
from api.reconcile.notify import Listener
from api.reports.routes import router as reports
from api.retention.routes import router as retention
from api.sessions.routes import routes as sessions
from api.settings import Settings
from api.streams.routes import router as streams
from api.topics.routes import router as topics
from api.usage.routes import router as usage
from api.workers import Workers
from headrace.version import VERSION

ROUTERS: Final = (
    organizations,
    projects,
    clusters,
    nodes,
    streams,
    topics,
    holds,
    messages,
    groups,
    live,
    access,
    operations,
    explain,
    usage,
    invoices,
    reports,
    retention,
    audit,
)
# Of one address: who types a password needs a few attempts, who guesses one needs many.
SIGN_INS: Final = Policy(burst=10, per_second=1)
# Every load balancer asks now and then; while the database is slow some wait at the same time.
READINESS_THREADS: Final = 4
DESCRIPTION: Final = """
Manage organizations, projects, clusters, streams, topics and keys. The API stores
the desired state, and workers apply it. A change is applied when
`status.observed_generation` equals `generation` and `Ready` is `True`.
""".strip()

health = APIRouter(tags=["health"])


@health.get("/healthz", operation_id="getHealth")
async def get_health() -> dict[str, str]:
    """Returns 200 while the process is running."""
    # On the loop: calls that wait for a node or the database may have all threads.
    return {"status": "ok"}


@health.get("/readyz", operation_id="getReadiness", response_model=dict[str, str])
async def get_readiness(request: Request) -> JSONResponse:
    """Returns 200 if the database is available and has the schema of this release."""
    # In threads of its own, for the same reason: it must not wait behind requests. A dependency
    # that is no coroutine would wait for one of theirs.
    database: Database = request.app.state.database
    try:
        threads: ThreadPoolExecutor = request.app.state.readiness
        await asyncio.get_running_loop().run_in_executor(threads, check_schema, database)
    except SchemaError as error:
        return JSONResponse({"status": "not ready", "reason": str(error)}, status_code=503)
    return JSONResponse({"status": "ready"})


async def _metrics(request: Request) -> Response:
    """The figures of this process; no part of the contract, and in the loop as /healthz."""
    return PlainTextResponse(metrics_text(request.app.state.nodes), media_type=MEDIA_TYPE)


def _root(request: Request) -> Response:
    """Where to go from here; no part of the contract. A browser goes to the console."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/console/")
    return JSONResponse(
        {
            "service": "Headrace control plane",
            "console": "/console/",
            "openapi": "/openapi.json",
            "health": "/healthz",
        }
    )


def routes() -> list[APIRoute]:
    """Every route of the contract."""
    return [
        route
        for router in (*ROUTERS, health)
        for route in router.routes
        if isinstance(route, APIRoute)
    ]


def create_app(
    settings: Settings, database: Database, pool: NodePool, workers: Workers | None = None
) -> FastAPI:
    """The application over an open database.

    :param pool: the connections to nodes, of the whole process.
    :param workers: run for as long as the application does; None if they run elsewhere.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # One listener a process: workers bring theirs.
        inside = workers or Listener(database)
        inside.start()
        yield
        inside.stop()

    app = FastAPI(
        title="Headrace control plane",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.settings = settings
    app.state.database = database
    app.state.nodes = pool
    app.state.limits = Limits(Policy(settings.api.request_burst, settings.api.requests_per_second))
    app.state.sign_ins = Limits(SIGN_INS)
    app.state.tails = Tails()
    app.state.live = Poller()
    app.state.readiness = ThreadPoolExecutor(READINESS_THREADS, "readiness")
    pages = [
        APIRoute("/", _root, include_in_schema=False),
        APIRoute("/metrics", _metrics, include_in_schema=False),
        *sessions(),
        *console(),
    ]
    app.state.routes = [*routes(), *pages]
    for router in (*ROUTERS, health):
        app.include_router(router)
    app.router.routes.extend([assets(), *pages])
    middleware.install(app, settings.api.body_seconds)
    _finish_contract(app)
    return app


def _finish_contract(app: FastAPI) -> None:
    """FastAPI's document, and what only we know."""
    plain = app.openapi

    def openapi() -> dict[str, object]:
        if not app.openapi_schema:
            contract.finish(plain())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
