"""The tables of the service. Times are seconds since 1970 in UTC; digests are SHA-256 in hexadecimal."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("request", String(64), nullable=False),  # digest of model, data files and options
    Column("target", String(8), nullable=False),
    Column("options", JSON, nullable=False),
    Column("created", Double, nullable=False),
    Column("queued", Double, nullable=False),  # when it took its place in the queue
    Column("started", Double),
    Column("ended", Double),
    Column("stage", String(80), nullable=False, default=""),
    Column("detail", Text, nullable=False, default=""),
    Column("progress", Double, nullable=False, default=0.0),
    Column("speedup", Double),  # the best so far
    Column("basis", String(16)),  # whether that is predicted or measured
    Column("result", String(64), ForeignKey("results.key"), index=True),
    Column("cached", Boolean, nullable=False, default=False),
    Column("error", JSON(none_as_null=True)),  # of a failed job, as a problem document
    Column("gone", Boolean, nullable=False, default=False),  # its files were given up
    Column("attempts", Integer, nullable=False, default=0),
    Column("fence", Integer, nullable=False, default=0),  # counts the claims; only the last one may write
    Column("worker", String(64)),
    Column("lease", Double),  # until when the claim holds
    Column("last_event", Integer, nullable=False, default=0),
    Index("jobs_by_state", "state", "tenant", "queued"),
    Index("jobs_by_tenant", "tenant", "created", "id"),
    Index("jobs_by_end", "gone", "ended"),
)

job_files = Table(
    "job_files",
    metadata,
    Column("job", String(32), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(1024), primary_key=True),
    Column("digest", String(64), nullable=False, index=True),
    Column("size", BigInteger, nullable=False),
)

results = Table(
    "results",
    metadata,
    Column("key", String(64), primary_key=True),  # digest of request, device and rules; or of one job alone
    Column("created", Double, nullable=False),
    Column("used", Double, nullable=False, index=True),
    Column("summary", JSON, nullable=False),
)

result_files = Table(
    "result_files",
    metadata,
    Column("result", String(64), ForeignKey("results.key", ondelete="CASCADE"), primary_key=True),
    Column("name", String(1024), primary_key=True),
    Column("digest", String(64), nullable=False, index=True),
    Column("size", BigInteger, nullable=False),
)

blobs = Table(
    "blobs",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("touched", Double, nullable=False, index=True),
)

events = Table(
    "events",
    metadata,
    Column("job", String(32), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("data", JSON, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("label", String(200), nullable=False, default=""),
    Column("created", Double, nullable=False),
    Column("revoked", Double),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("tenant", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("job", String(32), ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
)

tenants = Table(
    "tenants",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("turn", Double, nullable=False, default=0.0),  # when it was served last
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("device", String(80), nullable=False),
    Column("targets", JSON, nullable=False),  # fingerprint of device, versions and rules by target
    Column("facts", JSON, nullable=False),
    Column("started", Double, nullable=False),
    Column("seen", Double, nullable=False),
    Column("job", String(32)),
)

tallies = Table(
    "tallies",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("labels", String(200), primary_key=True),  # `name=value` pairs with commas
    Column("value", Double, nullable=False),
)

locks = Table("locks", metadata, Column("name", String(32), primary_key=True), Column("turn", Integer, nullable=False))
