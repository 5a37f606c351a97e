"""Where a job's speed-up comes from, while it runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("basis", sa.String(length=16), nullable=True))
