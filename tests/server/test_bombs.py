# pyright: basic
"""Small models that would take all time or memory: the real engine stops at its limits, and the service goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest
from onnx import parser

from tests.server.processes import Running
from tests.server.shop import OCTETS, settings_for, until
from tests.server.world import tiny

pytestmark = [pytest.mark.ort, pytest.mark.slow, pytest.mark.thorough]

SERVE = [sys.executable, "-m", "superopt", "serve"]
LIMITS = "budget=0.1&threads=1&target=cpu&options=fixed&time_limit=20&memory_limit=1500"
HEAD = '<ir_version: 8, opset_import: ["" : 17, "l" : 1]>'
FUNCTION = '<opset_import: ["" : 17, "l" : 1], domain: "l">'
DEEP = 30
DOUBLED = "\n".join(f"{FUNCTION} f{n + 1} (a) => (b) {{ c = l.f{n}(a)  b = l.f{n}(c) }}" for n in range(DEEP))
TEXTS = {
    "a loop without end": """g (float[2] x) => (float[2] y) <int64 m = {4611686018427387904}, bool c = {1}>
    { y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] a) => (bool d, float[2] o) {
        d = Identity(k)  o = Identity(a) }> }""",
    "a terabyte out of one number": """g (float[2] x) => (float[n] y) <int64[1] s = {1000000000000}>
    { z = ConstantOfShape(s)  y = Add(z, z) }""",
    "a billion nodes out of thirty functions": f"""g (float[2] x) => (float[2] y) {{ y = l.f{DEEP}(x) }}
    {FUNCTION} f0 (a) => (b) {{ b = Add(a, a) }}\n{DOUBLED}""",
    "a function of itself": f"""g (float[2] x) => (float[2] y) {{ y = l.f(x) }}
    {FUNCTION} f (a) => (b) {{ b = l.f(a) }}""",
    "eight gigabytes of input": "g (float[2147483648] x) => (float[2147483648] y) { y = Relu(x) }",
}


def test_what_would_take_everything_meets_a_limit(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu", lease=15.0)
    with Running(settings, SERVE) as running, httpx.Client(base_url=running.url, timeout=600.0) as http:
        until(lambda: bool(running.logged("ready")), 600.0)
        models = {name: parser.parse_model(HEAD + text).SerializeToString() for name, text in TEXTS.items()}
        made = {name: http.post(f"/v1/jobs?{LIMITS}", content=model, headers=OCTETS) for name, model in models.items()}
        assert {answer.status_code for answer in made.values()} == {202}
        for name, answer in made.items():
            job = answer.json()
            while job["ended"] is None:
                job = http.get(f"/v1/jobs/{job['id']}", headers={"Prefer": "wait=60"}).json()
            assert job["attempts"] == 1, name
            if job["state"] == "done":
                assert http.get(f"/v1/jobs/{job['id']}/model").content == models[name], "the original comes back"
            else:
                assert (job["state"], job["error"]["status"]) == ("failed", 422), name
        assert http.post(f"/v1/optimize?{LIMITS}", content=tiny(), headers=OCTETS).status_code == 200
        assert not running.logged("ended") or all("again_in" not in line for line in running.logged("ended"))
        assert list(tmp_path.glob("work/*/*")) == []
