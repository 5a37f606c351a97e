"""`superopt.Client`: optimize a model on a service, with the same options as here.

>>> client = superopt.Client("http://localhost:8000", token="so_…")
>>> result = client.optimize("model.onnx", budget=30)
>>> result.save("faster.onnx")

`AsyncClient` has the same methods as coroutines. What a service refuses is raised as in `superopt.errors`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from superopt import errors
from superopt.errors import BadInput, BadModel, BadOption, LimitHit, SuperoptError
from superopt.ir.files import Written, clear_write_errors, place
from superopt.report import Report

Progress = Callable[[str, str], None]
Job = Mapping[str, Any]
MODEL, REPORT = "model.onnx", "report.json"
AGAIN = (429, 502, 503, 504)
CHUNK = 1 << 20
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
T = TypeVar("T")


@dataclass(frozen=True)
class Optimized:
    """The model to ship, its data files by name, and what was done. `report.returned` says whether it is a new one."""

    model: bytes = field(repr=False)
    data: Mapping[str, bytes] = field(repr=False)
    report: Report
    job: Job = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the model, and its data files beside it."""
        for name, content in self.data.items():
            (Path(path).parent / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(path).parent / name).write_bytes(content)
        Path(path).write_bytes(self.model)


class AsyncClient:
    def __init__(self, url: str, token: str | None = None, *, patience: float = 60.0) -> None:
        """`patience`: seconds that a service may be away, or full, before that is an error."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        limits = httpx.Timeout(30.0, read=120.0)
        self._url, self._patience = url, patience
        try:
            self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=limits)
        except httpx.InvalidURL as error:
            raise BadOption(f"{url}: no URL: {error}") from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def optimize(
        self, model: str | Path | bytes, *, progress: Progress | None = None, **options: Any
    ) -> Optimized:
        """Optimize a model given as a path or as bytes; external data files are found beside the path."""
        job = await self.wait(await self.submit(model, **options), progress)
        with tempfile.TemporaryDirectory(prefix="superopt-") as folder:
            files = await self._fetch_all(job, Path(folder))
            content = {name: path.read_bytes() for name, path in files.items()}
        report = Report.model_validate_json(content.pop(REPORT))
        return Optimized(content.pop(MODEL), content, report, job)

    async def optimize_file(
        self, model: Path, out: Path, *, progress: Progress | None = None, **options: Any
    ) -> Report:
        """From file to file; the result is moved into place whole, its data files beside it first."""
        job = await self.wait(await self.submit(model, **options), progress)
        with clear_write_errors(out):
            staging = tempfile.TemporaryDirectory(prefix=".superopt-", dir=out.parent)
        with staging as folder:
            files = await self._fetch_all(job, Path(folder))
            report = Report.model_validate_json(files.pop(REPORT).read_bytes())
            place(Written(files.pop(MODEL), tuple(files)), out)
        return report

    async def submit(self, model: str | Path | bytes, **options: Any) -> Job:
        """Hand a model in. Tried again, it is the same job: the request has a name of its own."""
        key = {"Idempotency-Key": uuid.uuid4().hex}
        names = () if isinstance(model, bytes) else _external(Path(model))

        async def send() -> httpx.Response:
            async with AsyncExitStack() as stack:
                parts: list[tuple[str, tuple[str, Any, str]]] = [
                    ("options", ("options", json.dumps(options, default=str).encode(), "application/json"))
                ]
                if isinstance(model, bytes):
                    parts.append(("model", (MODEL, model, "application/octet-stream")))
                else:
                    folder = Path(model).parent
                    for part, name, path in (("model", MODEL, Path(model)), *(("data", n, folder / n) for n in names)):
                        file = stack.enter_context(_opened(path))
                        parts.append((part, (name, file, "application/octet-stream")))
                return await self._http.post("/v1/jobs", files=parts, headers=key)

        return (await self._insist(send)).json()

    async def job(self, id: str) -> Job:
        return (await self._get(f"/v1/jobs/{id}")).json()

    async def cancel(self, id: str) -> None:
        await self._insist(lambda: self._http.delete(f"/v1/jobs/{id}"))

    async def wait(self, job: Job, progress: Progress | None = None) -> Job:
        """The job when it is done; raises why it is not."""
        tell = progress or (lambda stage, detail: None)
        if job["ended"] is None:
            if job["state"] == "queued":
                tell("queued", "")
            async for kind, data in self.events(job["id"]):
                if kind == "stage":
                    tell(data["stage"], data["detail"])
                elif data["state"] in ("queued", "running"):
                    tell(data["state"], "")
            job = await self.job(job["id"])
        if job["state"] == "failed":
            raise _error(job["error"])
        if job["state"] != "done":
            raise SuperoptError(f"the job was {job['state']}")
        return job

    async def events(self, id: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """What happens to a job until it ends, as it happens; a connection that breaks is made again."""
        seen, until, pause = "0", time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            try:
                headers = {"Last-Event-ID": seen, "Accept": "text/event-stream"}
                async with self._http.stream("GET", f"/v1/jobs/{id}/events", headers=headers) as answer:
                    if answer.status_code not in AGAIN:
                        await _refuse(answer)
                        async for number, kind, data in _parsed(answer.aiter_lines()):
                            seen, until, pause = number, time.monotonic() + self._patience, FIRST_PAUSE
                            yield kind, data
                            if kind == "state" and data["state"] in ("done", "failed", "canceled"):
                                return
            except httpx.TransportError:
                pass
            if (await self.job(id))["ended"] is not None:
                return
            pause = await self._pause(pause, until)

    async def fetch(self, file: Mapping[str, Any], out: Path) -> None:
        """Download one file of a result, go on after breaks, and make sure that it is the one."""
        until, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            have = out.stat().st_size if out.exists() else 0
            headers = {"Range": f"bytes={have}-", "If-Range": f'"{file["sha256"]}"'} if 0 < have < file["bytes"] else {}
            try:
                async with self._http.stream("GET", file["url"], headers=headers) as answer:
                    if answer.status_code not in AGAIN:
                        await _refuse(answer)
                        with open(out, "ab" if answer.status_code == 206 else "wb") as target:
                            async for chunk in answer.aiter_bytes(CHUNK):
                                target.write(chunk)
                        break
            except httpx.TransportError:
                pass
            pause = await self._pause(pause, until)
        with open(out, "rb") as written:
            if hashlib.file_digest(written, "sha256").hexdigest() != file["sha256"]:
                raise SuperoptError(f"{file['name']}: what came is not what the service has")

    async def _fetch_all(self, job: Job, folder: Path) -> dict[str, Path]:
        fetched: dict[str, Path] = {}
        for file in job["result"]["files"]:
            name = _inside(file["name"])
            fetched[name] = folder / name
            fetched[name].parent.mkdir(parents=True, exist_ok=True)
            await self.fetch(file, fetched[name])
        return fetched

    async def _get(self, path: str) -> httpx.Response:
        return await self._insist(lambda: self._http.get(path))

    async def _insist(self, ask: Callable[[], Coroutine[Any, Any, httpx.Response]]) -> httpx.Response:
        """Ask until there is an answer, while patience lasts."""
        until, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            try:
                answer = await ask()
                told = answer.headers.get("retry-after", "")
                wanted = float(told) if told.isdecimal() else pause
                if answer.status_code not in AGAIN or time.monotonic() + wanted > until:
                    await _refuse(answer)
                    return answer
                await asyncio.sleep(wanted)
            except httpx.TransportError as error:
                if time.monotonic() > until:
                    raise SuperoptError(f"{self._url}: {error or type(error).__name__}") from None
                pause = await self._pause(pause, until)

    async def _pause(self, pause: float, until: float) -> float:
        if time.monotonic() > until:
            raise SuperoptError(f"{self._url}: the service does not answer")
        await asyncio.sleep(pause)
        return min(LONGEST_PAUSE, 2 * pause)


class Client:
    """The same, for programs without an event loop: one runs in a thread of its own."""

    def __init__(self, url: str, token: str | None = None, *, patience: float = 60.0) -> None:
        self._stack = start_blocking_portal()
        self._portal: BlockingPortal = self._stack.__enter__()
        self._client = AsyncClient(url, token, patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._call(self._client.__aexit__)
        self._stack.__exit__(None, None, None)

    def optimize(self, model: str | Path | bytes, *, progress: Progress | None = None, **options: Any) -> Optimized:
        return self._call(lambda: self._client.optimize(model, progress=progress, **options))

    def optimize_file(self, model: Path, out: Path, *, progress: Progress | None = None, **options: Any) -> Report:
        return self._call(lambda: self._client.optimize_file(model, out, progress=progress, **options))

    def submit(self, model: str | Path | bytes, **options: Any) -> Job:
        return self._call(lambda: self._client.submit(model, **options))

    def job(self, id: str) -> Job:
        return self._call(lambda: self._client.job(id))

    def wait(self, job: Job, progress: Progress | None = None) -> Job:
        return self._call(lambda: self._client.wait(job, progress))

    def cancel(self, id: str) -> None:
        self._call(lambda: self._client.cancel(id))

    def _call(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Ctrl-C reaches this thread, and ends what the other one does."""
        asked = self._portal.start_task_soon(ask)
        try:
            return asked.result()
        except BaseException:
            asked.cancel()
            raise


async def _parsed(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    """Server-sent events: number, kind, data."""
    held: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        if line == "":
            if "data" in held:
                yield held.get("id", "0"), held.get("event", ""), json.loads(held["data"])
            held = {}
        elif name in ("id", "event", "data"):
            held[name] = value


async def _refuse(answer: httpx.Response) -> None:
    """Raise what the service says is wrong."""
    if answer.status_code < 400:
        return
    await answer.aread()
    try:
        told = answer.json()
    except ValueError:
        told = {"detail": answer.text[:200]}
    raise _error({"status": answer.status_code, **told})


def _error(problem: Mapping[str, Any]) -> SuperoptError:
    """As the error that it would have been here, where the problem names one."""
    detail, status = str(problem.get("detail", "")), int(problem.get("status", 500))
    kind = getattr(errors, str(problem.get("error")), None)
    if not (isinstance(kind, type) and issubclass(kind, SuperoptError)):
        kind = LimitHit if status in (413, 429, 507) else BadInput if 400 <= status < 500 else SuperoptError
    made = SuperoptError.__new__(kind)
    made.args = (detail or f"the service answered {status}",)
    return made


def _opened(path: Path) -> Any:
    try:
        return open(path, "rb")
    except OSError as error:
        raise BadModel(f"{path}: cannot be read: {error.strerror}") from None


def _external(path: Path) -> tuple[str, ...]:
    """Data files that a model needs, relative to its folder."""
    from superopt.ir.onnx import load  # onnx is needed for this alone

    return load(path).external


def _inside(name: str) -> str:
    """Not even a service may name a file outside the folder of the result."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        raise SuperoptError(f"the service names a file {name!r}; expected one inside the folder of the model")
    return name
