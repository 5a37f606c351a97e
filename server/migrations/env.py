"""Alembic runs this to migrate a database; the engine comes from `server.database.open_database`."""

from __future__ import annotations

from alembic import context

from server.tables import metadata

with context.config.attributes["engine"].connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
