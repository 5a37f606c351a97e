"""The client: a model from here to a service and back, across breaks, with the service's words as errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import superopt
from superopt.cli import main
from superopt.client import AsyncClient, Client
from superopt.errors import BadInput, BadModel, CannotRun, CannotWrite, LimitHit, SuperoptError
from tests.server.shop import Shop
from tests.server.world import tiny

pytestmark = pytest.mark.unit


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(tiny())
    return tmp_path / "m.onnx"


def test_a_model_there_and_back(shop: Shop, model: Path) -> None:
    shop.hire()
    told: list[str] = []
    with superopt.Client(shop.url) as client:
        result = client.optimize(model, progress=lambda stage, _: told.append(stage), budget=2, dim={"n": 4})
        assert told == ["queued", "queued", "running", "loading", "timing"]
        assert result.model.startswith(tiny())
        assert (result.report.returned, result.report.timing.speedup) == ("optimized", 1.25)
        assert result.job["options"]["budget"] == 2.0
        assert result.job["options"]["dim"] == {"n": [[4, 1.0]]}
        again = client.optimize(model.read_bytes(), budget=2, dim={"n": 4})
        assert (again.model, again.job["cached"]) == (result.model, True)
    result.save(model.parent / "out.onnx")
    assert (model.parent / "out.onnx").read_bytes() == result.model


def test_the_same_with_an_event_loop(shop: Shop, model: Path) -> None:
    shop.hire()

    async def both() -> list[bytes]:
        async with superopt.AsyncClient(shop.url) as client:
            found = await asyncio.gather(client.optimize(model), client.optimize(tiny(other=1)))
            return [f.model for f in found]

    first, second = asyncio.run(both())
    assert first.startswith(tiny())
    assert second.startswith(tiny(other=1))


def test_a_result_with_data_files_lies_beside_the_model(shop: Shop, tmp_path: Path) -> None:
    shop.hire()
    out = tmp_path / "there" / "out.onnx"
    out.parent.mkdir()
    (tmp_path / "m.onnx").write_bytes(tiny(data=["sub.bin"]))
    with Client(shop.url) as client:
        client.optimize_file(tmp_path / "m.onnx", out)
        assert (out.parent / "sub.bin").read_bytes() == b"data sub.bin"
        assert sorted(p.name for p in out.parent.iterdir()) == ["out.onnx", "sub.bin"]
        (out.parent / "sub.bin").write_bytes(b"somebody else's")
        with pytest.raises(CannotWrite, match="exists with other content"):
            client.optimize_file(tmp_path / "m.onnx", out)
    assert (out.parent / "sub.bin").read_bytes() == b"somebody else's"


def test_what_the_service_refuses_is_raised_as_it_would_be_here(shop: Shop, tmp_path: Path) -> None:
    shop.hire()
    with Client(shop.url, patience=0.5) as client:
        with pytest.raises(CannotRun, match=r"^model\.onnx: is empty$"):
            client.optimize(tiny(refuse="CannotRun"))
        with pytest.raises(BadInput, match="is no option"):
            client.optimize(tiny(), nonsense=1)
        with pytest.raises(BadInput, match="the model is empty"):
            client.optimize(b"")
        with pytest.raises(BadModel, match="no such file"):
            client.optimize(tmp_path / "none.onnx")
        with pytest.raises(BadInput, match="no such job"):
            client.job("0" * 32)
        job = client.submit(tiny(sleep=600))
        client.cancel(job["id"])
        with pytest.raises(SuperoptError, match="was canceled"):
            client.wait(client.job(job["id"]))
    with pytest.raises(SuperoptError), Client("http://127.0.0.1:9", patience=0.1) as client:
        client.job("0" * 32)


def test_a_full_service_is_asked_again_and_then_given_up(tmp_path: Path) -> None:
    shop = Shop(tmp_path, queue=1)
    with Client(shop.url, patience=0.2) as client:
        client.submit(tiny(n=1))
        with pytest.raises(LimitHit, match="waiting already"):
            client.submit(tiny(n=2))
    shop.close()


class Breaking(httpx.AsyncHTTPTransport):
    """Loses the connection in the middle of every other answer."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        self.count += 1
        if self.count % 2:
            answer.stream = Broken(answer.stream)  # pyright: ignore[reportArgumentType]
        return answer


class Broken(httpx.AsyncByteStream):
    def __init__(self, whole: httpx.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._whole:
            yield chunk[: max(1, len(chunk) // 2)]
            raise httpx.ReadError("lost")

    async def aclose(self) -> None:
        await self._whole.aclose()


def test_a_connection_that_breaks_all_the_time(shop: Shop) -> None:
    shop.hire()
    breaking = Breaking()

    async def optimize() -> bytes:
        async with AsyncClient(shop.url) as client:
            client._http._transport = breaking  # pyright: ignore[reportPrivateUsage]
            return (await client.optimize(tiny())).model

    assert asyncio.run(optimize()).startswith(tiny())
    assert breaking.count > 6
    assert len(shop.client.get("/v1/jobs").json()["jobs"]) == 1


def test_a_service_cannot_name_files_elsewhere(shop: Shop, tmp_path: Path) -> None:
    client = AsyncClient(shop.url)
    for name in ("../x", "/etc/x", "", "a/../../x", "..\\x"):
        job = {"result": {"files": [{"name": name, "url": "/livez", "bytes": 1, "sha256": ""}]}}
        with pytest.raises(SuperoptError, match="expected one inside"):
            asyncio.run(client._fetch_all(job, tmp_path))  # pyright: ignore[reportPrivateUsage]


def test_remote_optimize(shop: Shop, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop.hire()
    out, report = model.parent / "out.onnx", model.parent / "r.json"
    arguments = ["remote", "optimize", str(model), "-o", str(out), "--url", shop.url, "--report", str(report)]
    assert main([*arguments, "--budget", "2"]) == 0
    assert out.read_bytes().startswith(tiny())
    assert '"returned": "optimized"' in report.read_text()
    assert "timing" in capsys.readouterr().err
    assert main([*arguments[:3], "-o", str(model), "--url", shop.url]) == 2
    assert main([*arguments, "--budget", "100000"]) == 2
    assert "at most 600 s here" in capsys.readouterr().err


def test_help_and_version_load_nothing_of_it() -> None:
    code = (
        "import sys; from superopt.cli.parser import build_parser; build_parser(); import superopt; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"httpx", "fastapi", "sqlalchemy", "uvicorn", "numpy", "onnx", "pydantic", "anyio"} & set(loaded)
