# pyright: basic
"""The service against its own OpenAPI document: whatever is sent, what comes back is described there, and no 5xx.

Schemathesis makes requests out of the document, right and wrong ones. Jobs and models that exist are mixed in, so
that not everything is refused at the door.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as described

from server.api import make_app
from server.database import open_database
from server.tokens import Tokens
from tests.server.shop import Shop
from tests.server.world import tiny

pytestmark = [pytest.mark.unit, pytest.mark.slow]

# What comes back is held to the document. What is refused is not: no document can tell a model from other bytes.
CHECKS = [
    checks.not_a_server_error, described.status_code_conformance, described.content_type_conformance,
    described.response_headers_conformance, described.response_schema_conformance, described.unsupported_method,
    described.allow_header_conformance, described.ignored_auth,
]  # fmt: skip
ALL: list[Any] = list(HealthCheck)
FEW = settings(max_examples=10, deadline=None, suppress_health_check=ALL, derandomize=True)
MANY = settings(max_examples=500, deadline=None, suppress_health_check=ALL)


@dataclass
class Known:
    """What a client may know: a token, and jobs in every state."""

    shop: Shop
    token: str
    ended: list[str]
    others: list[str]
    count: Any = field(default_factory=itertools.count)

    def send(self, case: Any) -> None:
        self.mix_in(case, next(self.count))
        case.call_and_validate(
            self.shop.url, headers={"Authorization": f"Bearer {self.token}"}, checks=CHECKS, timeout=600
        )

    def mix_in(self, case: Any, number: int) -> None:
        """Every other request is about a job that there is, or brings a model that is one."""
        if number % 2:
            return
        if "id" in (case.path_parameters or {}):
            # The events of a job that goes on do not end.
            jobs = self.ended if case.path.endswith("/events") else [*self.ended, *self.others]
            case.path_parameters["id"] = jobs[number // 2 % len(jobs)]
        if case.media_type == "application/octet-stream":
            case.body = tiny(number=number)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Generator[Known]:
    shop = Shop(tmp_path_factory.mktemp("schema") / "data", auth="on", wait_limit=0.05, attempts=1, upload_patience=5.0)
    database = open_database(shop.settings.database_url)
    token = Tokens(database).create("alice")
    database.close()
    shop.client.headers["Authorization"] = f"Bearer {token}"
    shop.hire()
    ended = [shop.ended(shop.post(tiny(**told))) for told in ({}, {"refuse": "BadModel"}, {"data": ["w.bin"]})]
    running, queued, canceled, gone = (shop.post(tiny(sleep=600, number=n)) for n in range(4))
    for job in (canceled, gone, gone):
        assert shop.client.delete(f"/v1/jobs/{job['id']}").status_code in (200, 204)
    over, others = [[job["id"] for job in jobs] for jobs in ((*ended, canceled, gone), (running, queued))]
    yield Known(shop, token, over, others)
    shop.close()


schema = schemathesis.openapi.from_dict(make_app(cast(Any, None)).openapi())


@schema.parametrize()
@FEW
def test_every_answer_is_as_the_document_says(case: Any, known: Known) -> None:
    known.send(case)


@pytest.mark.thorough
@schema.parametrize()
@MANY
def test_every_answer_is_as_the_document_says_of_many(case: Any, known: Known) -> None:
    known.send(case)
