"""The API: jobs handed in, followed, fetched and taken back, in the words of HTTP."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from server.choices import fields
from server.jobs import Jobs
from superopt.options import Options
from tests.server.shop import OCTETS, Shop, until
from tests.server.world import external, sha256, tiny

pytestmark = pytest.mark.unit


def problem(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status
    assert document["type"] == "about:blank"
    assert document["title"]
    assert document["detail"]
    return document


def test_a_model_in_and_the_faster_one_out(shop: Shop) -> None:
    shop.hire()
    answer = shop.client.post("/v1/optimize?budget=1", content=tiny(), headers=OCTETS)
    assert answer.status_code == 200, answer.text
    assert answer.content.startswith(tiny())
    assert answer.headers["etag"] == f'"{sha256(answer.content)}"'
    again = shop.client.get(answer.headers["content-location"])
    assert again.content == answer.content


def test_a_job_from_beginning_to_end(shop: Shop) -> None:
    answer = shop.client.post("/v1/jobs?budget=2.5&dim=batch=8&time-limit=9", content=tiny(), headers=OCTETS)
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == job["links"]["self"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["result"], job["ended"], job["attempts"]) == ("queued", None, None, 0)
    assert job["options"] == json.loads(json.dumps(Options.of(budget=2.5, dim={"batch": 8}, time_limit=9).as_json()))
    assert job["files"] == [{"name": "model.onnx", "bytes": len(tiny()), "sha256": sha256(tiny()), "url": None}]
    problem(shop.client.get(f"/v1/jobs/{job['id']}/model"), 409)
    shop.hire()
    done = shop.ended(job)
    assert (done["state"], done["progress"], done["speedup"], done["cached"]) == ("done", 1.0, 1.25, False)
    assert done["result"]["returned"] == "optimized"
    assert [line["stage"] for line in done["log"]] == ["loading", "timing"]
    files = {f["name"]: f for f in done["result"]["files"]}
    model = shop.client.get(files["model.onnx"]["url"])
    assert (sha256(model.content), len(model.content)) == (files["model.onnx"]["sha256"], files["model.onnx"]["bytes"])
    report = shop.client.get(done["links"]["report"])
    assert report.headers["content-type"] == "application/json"
    assert report.json()["returned"] == "optimized"
    listed = shop.client.get("/v1/jobs").json()
    assert ([j["id"] for j in listed["jobs"]], listed["next"]) == ([job["id"]], None)


def test_a_running_job_tells_what_it_has_gained(shop: Shop) -> None:
    stages = [
        {"stage": "searching"},
        {"stage": "timing regions", "speedup": 1.4, "basis": "predicted"},
        {"stage": "checking", "speedup": 1.3, "basis": "measured"},
    ]
    job = shop.post(tiny(stages=stages, sleep=600))
    shop.hire()
    until(lambda: shop.client.get(f"/v1/jobs/{job['id']}").json()["stage"] == "checking")
    running = shop.client.get(f"/v1/jobs/{job['id']}").json()
    assert (running["state"], running["speedup"], running["basis"]) == ("running", 1.3, "measured")
    shop.client.delete(f"/v1/jobs/{job['id']}")
    lines = shop.client.get(f"/v1/jobs/{job['id']}/events").text.splitlines()
    told = [d for d in (json.loads(x.removeprefix("data: ")) for x in lines if x.startswith("data: ")) if "stage" in d]
    assert [(t["stage"], t["speedup"], t["basis"]) for t in told] == [
        ("loading", None, None), ("searching", None, None), ("timing regions", 1.4, "predicted"),
        ("checking", 1.3, "measured"),
    ]  # fmt: skip
    progress = [t["progress"] for t in told]
    assert progress == sorted(progress)


def test_a_job_that_fails_says_why(shop: Shop) -> None:
    shop.hire()
    model = tiny(refuse="CannotRun")
    failed = shop.ended(shop.post(model))
    assert failed["state"] == "failed"
    assert failed["error"]["detail"] == "model.onnx: is empty"
    document = problem(shop.client.post("/v1/optimize", content=model, headers=OCTETS), 422)
    assert (document["error"], document["detail"]) == ("CannotRun", "model.onnx: is empty")
    assert problem(shop.client.get(f"/v1/jobs/{failed['id']}/model"), 409)["state"] == "failed"


def test_who_will_not_wait_is_sent_to_the_job(shop: Shop) -> None:
    headers = OCTETS | {"Prefer": "wait=0"}
    answer = shop.client.post("/v1/optimize", content=tiny(), headers=headers, follow_redirects=False)
    assert answer.status_code == 303
    assert shop.client.get(answer.headers["location"]).json()["state"] == "queued"


def test_prefer_wait(shop: Shop) -> None:
    answer = shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS | {"Prefer": "wait=1"})
    assert (answer.status_code, answer.headers["preference-applied"]) == (202, "wait=1")
    shop.hire()
    answer = shop.client.get(answer.headers["location"], headers={"Prefer": "respond-async, wait=60"})
    assert (answer.json()["state"], answer.headers["preference-applied"]) == ("done", "wait=60")


def test_a_known_answer_comes_at_once(shop: Shop) -> None:
    shop.hire()
    first = shop.ended(shop.post(tiny()))
    answer = shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS)
    assert answer.status_code == 200
    second = answer.json()
    assert (second["state"], second["cached"], second["id"] != first["id"]) == ("done", True, True)
    assert second["result"]["files"][0]["sha256"] == first["result"]["files"][0]["sha256"]


def test_idempotency_key(shop: Shop) -> None:
    first, second = (shop.post(tiny(), **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first["id"] == second["id"]
    other = shop.client.post("/v1/jobs", content=tiny(sleep=1), headers=OCTETS | {"Idempotency-Key": "k"})
    assert "Idempotency-Key" in problem(other, 422)["detail"]
    for key in ("", "x" * 256, "a b"):
        answer = shop.client.post("/v1/jobs", content=tiny(), headers={**OCTETS, "Idempotency-Key": key})
        assert answer.status_code in (400, 422), key


def test_cancel_and_give_up(shop: Shop) -> None:
    job = shop.post(tiny())
    canceled = shop.client.delete(f"/v1/jobs/{job['id']}")
    assert (canceled.status_code, canceled.json()["state"]) == (200, "canceled")
    problem(shop.client.get(f"/v1/jobs/{job['id']}/model"), 409)
    assert shop.client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    for path in ("", "/model", "/report", "/events", "/data/w"):
        problem(shop.client.get(f"/v1/jobs/{job['id']}{path}"), 410)
    problem(shop.client.delete(f"/v1/jobs/{job['id']}"), 410)


def test_what_is_not_there(shop: Shop) -> None:
    for path in ("/nothing", "/v1/jobs/x", f"/v1/jobs/{'0' * 32}", f"/v1/jobs/{'0' * 32}/events", "/v1/rules/none"):
        problem(shop.client.get(path), 404)
    assert problem(shop.client.put("/v1/jobs"), 405)
    problem(shop.client.get("/v1/jobs?limit=0"), 422)
    problem(shop.client.get("/v1/jobs?before=zzz"), 404)


def test_events_as_they_happen_and_after_a_break(shop: Shop) -> None:
    job = shop.post(tiny(sleep=0.3))
    seen: list[str] = []

    def follow() -> None:
        with shop.client.stream("GET", job["links"]["events"]) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            seen.extend(stream.iter_lines())

    reader = threading.Thread(target=follow)
    reader.start()
    shop.hire()
    reader.join(60)
    told = [json.loads(line[6:]) for line in seen if line.startswith("data: ")]
    assert [t.get("state", t.get("stage")) for t in told] == ["queued", "running", "loading", "timing", "done"]
    assert [line for line in seen if line.startswith("id: ")] == [f"id: {n}" for n in range(1, 6)]
    assert [line[7:] for line in seen if line.startswith("event: ")] == ["state", "state", "stage", "stage", "state"]
    rest = shop.client.get(job["links"]["events"], headers={"Last-Event-ID": "3"}).text
    assert [line for line in rest.splitlines() if line.startswith("id: ")] == ["id: 4", "id: 5"]
    assert "id:" not in shop.client.get(job["links"]["events"], headers={"Last-Event-ID": "5"}).text
    problem(shop.client.get(job["links"]["events"], headers={"Last-Event-ID": "x"}), 400)


def test_ranges_and_tags(shop: Shop) -> None:
    shop.hire()
    url = shop.ended(shop.post(tiny()))["links"]["model"]
    whole = shop.client.get(url)
    tag, size = whole.headers["etag"], len(whole.content)
    plain = base64.b64encode(bytes.fromhex(sha256(whole.content))).decode()
    assert (whole.headers["digest"], whole.headers["repr-digest"]) == (f"sha-256={plain}", f"sha-256=:{plain}:")
    head = shop.client.head(url)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))
    for asked, part in {"bytes=0-3": slice(0, 4), "bytes=5-": slice(5, None), "bytes=-4": slice(-4, None)}.items():
        answer = shop.client.get(url, headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, whole.content[part])
        assert answer.headers["content-range"].endswith(f"/{size}")
    beyond = shop.client.get(url, headers={"Range": f"bytes={size}-"})
    problem(beyond, 416)
    assert beyond.headers["content-range"] == f"bytes */{size}"
    for asked in ("bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=x-"):
        assert shop.client.get(url, headers={"Range": asked}).status_code == 200
    for condition, status in ((tag, 206), ('"other"', 200)):
        answer = shop.client.get(url, headers={"Range": "bytes=0-3", "If-Range": condition})
        assert answer.status_code == status
    for condition, status in ((tag, 304), (f'"x", W/{tag}', 304), ("*", 304), ('"x"', 200)):
        assert shop.client.get(url, headers={"If-None-Match": condition}).status_code == status


def test_a_result_with_data_files(shop: Shop) -> None:
    shop.hire()
    model = tiny(data=["w.bin"])
    answer = shop.client.post("/v1/optimize", content=model, headers=OCTETS, follow_redirects=False)
    assert answer.status_code == 303
    done = shop.client.get(answer.headers["location"]).json()
    (url,) = [f["url"] for f in done["result"]["files"] if f["name"] == "w.bin"]
    assert shop.client.get(url).content == b"data w.bin"
    problem(shop.client.get(url.replace("w.bin", "../model.onnx")), 404)
    problem(shop.client.get(url.replace("w.bin", "%2e%2e/%2e%2e/superopt.db")), 404)


def test_external_data_and_options_in_a_form(shop: Shop) -> None:
    files = [
        ("options", ("options", b'{"budget": 3, "dim": {"n": [1, 2]}}', "application/json")),
        ("model", ("anything", external("w.bin", "sub/v.bin"))),
        ("data", ("w.bin", b"weights")),
        ("data", ("sub/v.bin", b"more")),
    ]
    answer = shop.client.post("/v1/jobs?seed=7", files=files)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert {f["name"]: f["sha256"] for f in job["files"]} == {
        "model.onnx": sha256(external("w.bin", "sub/v.bin")), "w.bin": sha256(b"weights"), "sub/v.bin": sha256(b"more"),
    }  # fmt: skip
    assert (job["options"]["budget"], job["options"]["seed"]) == (3.0, 7)
    assert job["options"]["dim"] == {"n": [[1, 1.0], [2, 1.0]]}


def test_options_are_those_of_the_command_line(shop: Shop) -> None:
    defaults = shop.post(tiny())["options"]
    assert defaults == json.loads(json.dumps(Options(budget=60.0).as_json()))
    document = shop.client.get("/openapi.json").json()
    for path in ("/v1/jobs", "/v1/optimize"):
        described = {p["name"]: p for p in document["paths"][path]["post"]["parameters"] if p["in"] == "query"}
        assert set(described) == {f.name for f in fields()}
        for field in fields():
            assert described[field.name]["description"] == field.metadata["help"]


NONSENSE = [
    ("budget=x", "budget: "), ("budget=-1", "budget"), ("budget=nan", "budget"), ("budget=100000", "at most 600"),
    ("time_limit=99999", "at most 3600"), ("target=gpu", "target"), ("nonsense=1", "is no option"),
    ("rules=/etc/passwd", "no file is opened by name"), ("inputs=x.npz", "names a file"),
    ("costs=/c", "names a file"), ("dim=batch", "--dim: expected NAME=SIZE"), ("dim=a=1&dim=a=2", "given twice"),
    ("seed=1&seed=2", "given twice"), ("shape=x=-1", "sizes are 0 or more"), ("alpha=0.5", "alpha"),
    ("threads=9999", "threads"),
]  # fmt: skip


def test_options_that_make_no_sense_are_refused_before_the_upload(shop: Shop) -> None:
    for query, told in NONSENSE:
        for path in ("/v1/jobs", "/v1/optimize"):
            assert told in problem(shop.client.post(f"{path}?{query}", content=tiny(), headers=OCTETS), 422)["detail"]
    assert shop.client.get("/v1/jobs").json()["jobs"] == []


def test_a_full_queue(tmp_path: Path) -> None:
    shop = Shop(tmp_path, queue=2)
    for i in range(2):
        shop.post(tiny(n=i))
    for path in ("/v1/jobs", "/v1/optimize"):
        answer = shop.client.post(path, content=tiny(n=3), headers=OCTETS)
        problem(answer, 429)
        assert int(answer.headers["retry-after"]) >= 1
    assert list((tmp_path / "spool").iterdir()) == []
    shop.close()


def test_devices_and_rules(shop: Shop) -> None:
    assert shop.client.get("/v1/devices").json() == {"devices": []}
    shop.hire()
    shop.ended(shop.post(tiny()))
    (device,) = shop.client.get("/v1/devices").json()["devices"]
    assert (device["name"], device["targets"], device["device"]) == ("stand-in", ["auto", "cpu"], "cpu")
    rules = shop.client.get("/v1/rules").json()["rules"]
    assert len(rules) > 100
    assert "text" not in rules[0]
    one = shop.client.get(f"/v1/rules/{rules[0]['name']}").json()
    assert one["text"].startswith(f"rule {rules[0]['name']}\n")


def busy_seconds(shop: Shop) -> float:
    lines = shop.client.get("/metrics").text.splitlines()
    return sum(float(x.split()[-1]) for x in lines if x.startswith("superopt_device_busy_seconds_total{"))


def test_a_job_under_way_counts_as_work_of_its_device(shop: Shop) -> None:
    """Utilization is the rate of the seconds, which must neither stand still for the length of a job nor go back."""
    shop.hire()
    job = shop.post(tiny(sleep=600))
    until(lambda: busy_seconds(shop) > 0)
    first = busy_seconds(shop)
    until(lambda: busy_seconds(shop) > first)
    last = busy_seconds(shop)
    shop.client.delete(f"/v1/jobs/{job['id']}")
    ended = busy_seconds(shop)
    assert ended >= last
    assert busy_seconds(shop) == ended


def test_alive_ready_and_counted(shop: Shop) -> None:
    assert shop.client.get("/livez").text == "ok\n"
    waiting = shop.client.get("/readyz")
    assert waiting.status_code == 503
    assert waiting.json()["checks"] == {
        "database": "ok", "store": "ok", "device": "no worker is at work", "rules": "no worker has rules",
    }  # fmt: skip
    shop.hire()
    shop.ended(shop.post(tiny()))
    shop.post(tiny())
    assert shop.client.get("/readyz").json()["ready"] is True
    counted = shop.client.get("/metrics").text
    for line in (
        'superopt_jobs{state="done"} 2.0', 'superopt_jobs{state="queued"} 0.0', "superopt_submitted_total 2.0",
        'superopt_jobs_ended_total{state="done"} 2.0', "superopt_cache_hits_total 1.0",
        "superopt_queue_age_seconds 0.0",
        'superopt_speedup_bucket{le="1.25"} 1.0', "superopt_job_seconds_count 1.0", "superopt_speedup_sum 1.25",
        'superopt_stage_seconds_bucket{le="+Inf",stage="timing"} 1.0', "process_resident_memory_bytes ",
        "superopt_device_busy_seconds_total{", "superopt_device_busy{",
    ):  # fmt: skip
        assert line in counted, line
    (shop.settings.folder / "store").rename(shop.settings.folder / "elsewhere")
    assert shop.client.get("/readyz").json()["checks"]["store"] == "No such file or directory"
    (shop.settings.folder / "elsewhere").rename(shop.settings.folder / "store")


def test_the_document_describes_every_path_with_its_problems(shop: Shop) -> None:
    document = shop.client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/v1/optimize", "/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/{id}/events", "/v1/jobs/{id}/model",
        "/v1/jobs/{id}/report", "/v1/jobs/{id}/graphs", "/v1/jobs/{id}/data/{name}", "/v1/rules",
        "/v1/rules/{name}", "/v1/devices", "/livez", "/readyz", "/metrics",
    }  # fmt: skip
    ids = [o["operationId"] for path in document["paths"].values() for o in path.values()]
    assert len(ids) == len(set(ids))
    body = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/octet-stream", "multipart/form-data"}
    for status in ("413", "415", "422", "429"):
        assert "application/problem+json" in document["paths"]["/v1/jobs"]["post"]["responses"][status]["content"]
    assert document["components"]["schemas"]["JobDocument"]["properties"]["id"]["examples"]


def test_a_bug_is_told_without_its_insides(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr(Jobs, "latest", broken)
    answer = shop.client.get("/v1/jobs")
    assert "1234" not in str(problem(answer, 500))
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_headers_around_everything(shop: Shop) -> None:
    for path in ("/livez", "/nothing", "/v1/jobs"):
        headers = shop.client.get(path, headers={"X-Request-ID": "mine-1"}).headers
        assert headers["x-request-id"] == "mine-1"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
    assert shop.client.get("/livez", headers={"X-Request-ID": "a b"}).headers["x-request-id"] != "a b"


def test_a_method_that_is_none_is_answered_with_those_that_are(shop: Shop) -> None:
    for path, methods in (("/v1/jobs", "GET, POST"), (f"/v1/jobs/{'0' * 32}", "DELETE, GET"), ("/livez", "GET")):
        answer = shop.client.put(path)
        problem(answer, 405)
        assert answer.headers["allow"] == methods
