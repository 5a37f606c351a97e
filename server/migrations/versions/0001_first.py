"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "blobs",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("touched", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index(op.f("ix_blobs_touched"), "blobs", ["touched"], unique=False)
    op.create_table(
        "locks",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "results",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("used", sa.Double(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index(op.f("ix_results_used"), "results", ["used"], unique=False)
    op.create_table(
        "tallies",
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("labels", sa.String(length=200), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels"),
    )
    op.create_table(
        "tenants",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("turn", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("device", sa.String(length=80), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("seen", sa.Double(), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("target", sa.String(length=8), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("queued", sa.Double(), nullable=False),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("stage", sa.String(length=80), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=True),
        sa.Column("result", sa.String(length=64), nullable=True),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("lease", sa.Double(), nullable=True),
        sa.Column("last_event", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["result"],
            ["results.key"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_jobs_result"), "jobs", ["result"], unique=False)
    op.create_index("jobs_by_end", "jobs", ["gone", "ended"], unique=False)
    op.create_index("jobs_by_state", "jobs", ["state", "tenant", "queued"], unique=False)
    op.create_index("jobs_by_tenant", "jobs", ["tenant", "created", "id"], unique=False)
    op.create_table(
        "result_files",
        sa.Column("result", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=1024), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["result"], ["results.key"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result", "name"),
    )
    op.create_index(op.f("ix_result_files_digest"), "result_files", ["digest"], unique=False)
    op.create_table(
        "events",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "number"),
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tenant", "key"),
    )
    op.create_index(op.f("ix_idempotency_job"), "idempotency", ["job"], unique=False)
    op.create_table(
        "job_files",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=1024), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "name"),
    )
    op.create_index(op.f("ix_job_files_digest"), "job_files", ["digest"], unique=False)
    op.execute("insert into locks (name, turn) values ('queue', 0)")
