"""Uploads gone wrong, many of them: each is answered, none breaks anything, nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
from pathlib import Path

import pytest

from benchmarks.fuzz_service import Answers, left_over
from benchmarks.fuzzing import uploads
from benchmarks.serving import open_files
from tests.server.shop import Shop, until
from tests.server.world import tiny

pytestmark = [pytest.mark.unit, pytest.mark.slow]


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_every_upload_is_answered_and_leaves_nothing(tmp_path: Path, count: int) -> None:
    answers = Answers()
    with contextlib.closing(Shop(tmp_path, queue=100_000, tenant_queue=100_000, wait_limit=0.05)) as shop:
        files = open_files(os.getpid())
        for upload in itertools.islice(uploads(seed=count), count):
            headers = {"Prefer": "wait=0", **upload.headers}
            sent = shop.client.build_request("POST", upload.path, content=upload.body, headers=headers)
            answers.hear(upload, shop.client.send(sent, follow_redirects=False))
        assert answers.wrong == []
        assert sum(answers.statuses.values()) == count
        assert answers.taken, "some are still models"
        assert answers.statuses[422] > count // 10
        assert shop.post(tiny())["state"] == "queued"
        gc.collect()
        until(lambda: open_files(os.getpid()) <= files + 5)
    assert left_over(tmp_path) == []
