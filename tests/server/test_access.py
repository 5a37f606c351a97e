"""Who may come in, what they see, and what is never written down."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from sqlalchemy import select

from server.database import open_database
from server.logs import JsonLines, in_job
from server.settings import Settings
from server.tables import tokens
from server.tokens import Tokens
from superopt.errors import BadOption
from tests.server.shop import OCTETS, Shop
from tests.server.world import World, tiny

pytestmark = pytest.mark.unit


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_tokens_are_kept_as_hashes(world: World) -> None:
    kept = Tokens(world.database)
    token = kept.create("alice", "laptop")
    assert kept.tenant_of(token) == "alice"
    assert kept.tenant_of(kept.create("bob")) == "bob"
    with world.database.read() as connection:
        rows = [dict(row) for row in connection.execute(select(tokens)).mappings()]
    assert token.split("_", 2)[2] not in json.dumps(rows)
    changed = token[:-1] + ("A" if token[-1] != "A" else "B")
    for wrong in ("", "x", changed, token + "x", token.replace("so_", "no_"), f"so_{'0' * 16}_{token[-43:]}"):
        assert kept.tenant_of(wrong) is None
    (alice, _) = kept.all()
    assert (alice.tenant, alice.label, alice.revoked) == ("alice", "laptop", None)
    assert kept.revoke(alice.id)
    assert not kept.revoke(alice.id)
    assert kept.tenant_of(token) is None
    for name in ("", "a b", "../x", "x" * 65, "-a"):
        with pytest.raises(BadOption, match="--tenant"):
            kept.create(name)


def test_tenants_see_only_their_own(tmp_path: Path) -> None:
    shop = Shop(tmp_path, auth="on")
    kept = Tokens(open_database(shop.settings.database_url))
    alice, bob = bearer(kept.create("alice")), bearer(kept.create("bob"))
    for path in ("/v1/jobs", "/v1/rules", "/v1/devices", "/metrics"):
        for headers in ({}, bearer("so_x"), {"Authorization": "Basic eDp5"}):
            answer = shop.client.get(path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="superopt"')
    assert shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS).status_code == 401
    for path in ("/livez", "/openapi.json"):
        assert shop.client.get(path).status_code == 200
    job = shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS | alice).json()
    for path in ("", "/events", "/model", "/report"):
        assert shop.client.get(f"/v1/jobs/{job['id']}{path}", headers=bob).status_code == 404
    assert shop.client.delete(f"/v1/jobs/{job['id']}", headers=bob).status_code == 404
    assert shop.client.get("/v1/jobs", headers=bob).json()["jobs"] == []
    assert shop.client.get(f"/v1/jobs/{job['id']}", headers=alice).json()["state"] == "queued"
    assert (
        shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS | bob | {"Host": "any.example"}).status_code == 202
    )
    shop.close()


def test_without_tokens_no_page_of_another_site_gets_in(shop: Shop) -> None:
    host = f"127.0.0.1:{shop.client.base_url.port}"
    for name in ("evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"):
        assert shop.client.get("/v1/jobs", headers={"Host": name}).status_code in (400, 403), name
    for name in ("localhost", "127.0.0.1:1", "[::1]:80"):
        assert shop.client.get("/v1/jobs", headers={"Host": name}).status_code == 200
    for foreign in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS | foreign).status_code == 403
    for own in ({"Origin": f"http://{host}"}, {"Sec-Fetch-Site": "same-origin"}):
        assert shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS | own).status_code == 202


def test_logs_have_the_job_and_no_secret(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        job = shop.post(tiny())
        shop.client.get(f"/v1/jobs/{job['id']}?token=hush", headers=bearer("so_hush"))
    lines = [json.loads(JsonLines().format(r)) for r in caplog.records if r.name == "superopt.api"]
    posted, shown = (line for line in lines if line["message"] == "request")
    assert (posted["method"], posted["path"], posted["status"], posted["job"]) == ("POST", "/v1/jobs", 202, job["id"])
    assert (shown["path"], shown["job"]) == (f"/v1/jobs/{job['id']}", job["id"])
    assert "hush" not in json.dumps(lines)


def test_a_log_line_is_one_object() -> None:
    record = logging.makeLogRecord({"name": "superopt.x", "msg": "a\nb %s", "args": ("c",), "levelname": "INFO"})
    record.token, record.password_hint, record.size = "s", "s", Settings  # pyright: ignore[reportAttributeAccessIssue]
    with in_job("j1"):
        text = JsonLines().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert (line["message"], line["job"], line["level"]) == ("a\nb c", "j1", "info")
    assert "token" not in line
    assert "password_hint" not in line
