"""Bearer tokens: shown once, kept as a hash. The secret is random and long, so that a plain hash cannot be guessed."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from server.database import Database
from server.tables import tokens
from superopt.errors import BadOption

_TOKEN = re.compile(r"so_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Token:
    id: str
    tenant: str
    label: str
    created: float
    revoked: float | None


class Tokens:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant: str, label: str = "") -> str:
        """A new token; this is the only time that it can be read."""
        if not _TENANT.fullmatch(tenant):
            raise BadOption(f"--tenant: expected up to 64 letters, digits, dots, dashes, underscores, found {tenant!r}")
        id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self._database.write() as connection:
            now = self._database.now(connection)
            row = {"id": id, "tenant": tenant, "hash": _hash(secret), "label": label[:200], "created": now}
            connection.execute(insert(tokens).values(**row))
        return f"so_{id}_{secret}"

    def tenant_of(self, token: str) -> str | None:
        """Whose token it is; None where it is nobody's."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        with self._database.read() as connection:
            query = select(tokens.c.tenant, tokens.c.hash).where(tokens.c.id == match[1], tokens.c.revoked.is_(None))
            row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(row.hash, _hash(match[2])):
            return None
        return row.tenant

    def all(self) -> list[Token]:
        columns = (tokens.c.id, tokens.c.tenant, tokens.c.label, tokens.c.created, tokens.c.revoked)
        with self._database.read() as connection:
            return [Token(**row) for row in connection.execute(select(*columns).order_by(tokens.c.created)).mappings()]

    def revoke(self, id: str) -> bool:
        with self._database.write() as connection:
            now = self._database.now(connection)
            valid = update(tokens).where(tokens.c.id == id, tokens.c.revoked.is_(None))
            return connection.execute(valid.values(revoked=now)).rowcount == 1


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
