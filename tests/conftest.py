"""What holds for every test process, before numpy is loaded."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Its threads spin while they wait for one another: beside another test, small equations would take twenty times as
long."""
