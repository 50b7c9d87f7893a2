"""Bring a store's schema up to date; safe when several processes start at once."""

import re
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from engine.errors import StoreError
from engine.store.migrations import HEAD

FOLDER = Path(__file__).parent / "migrations"

# The execution option of a connection that is going to write; `database` begins its transactions accordingly.
WRITES = {"store_writes": True}

# Any fixed number: it names the lock among this database's advisory locks.
_POSTGRES_LOCK = 7_227_003_214


def schema_revision(connection: Connection) -> str | None:
    """Return the revision of the schema found, or None for a database without one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def require_current_schema(engine: Engine) -> None:
    """Check the schema without changing it.

    Raises:
        StoreError: if the schema is missing, older or newer than this program.
    """
    with engine.connect() as connection:
        found = schema_revision(connection)
    if found is None or _is_older(found):
        raise StoreError(
            f"schema={found or 'none'} of {_shown(engine)} is older than this program needs ({HEAD}); "
            "start the worker or any command that writes, which brings it up to date"
        )
    _refuse_newer(found, engine)


def migrate(engine: Engine) -> None:
    """Upgrade the schema to this program's. Does nothing where it is current.

    The lock is taken before the revision is read: of two processes that start together, one migrates
    and the other finds the work done.

    Raises:
        StoreError: if the schema is newer than this program.
    """
    with engine.connect() as connection:
        found = schema_revision(connection)
    if found == HEAD:
        return
    if found is not None:
        _refuse_newer(found, engine)
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
        found = schema_revision(connection)
        if found is not None:
            _refuse_newer(found, engine)
        if found != HEAD:
            _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    # Imported here because a store is opened far more often than it is migrated.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _is_older(found: str) -> bool:
    return _number(found) < _number(HEAD)


def _refuse_newer(found: str, engine: Engine) -> None:
    if _number(found) > _number(HEAD):
        raise StoreError(
            f"schema={found} of {_shown(engine)} is newer than this program knows ({HEAD}); "
            "update GRPO Lab, or point GRPO_LAB_DATABASE_URL at another store"
        )


def _number(revision: str) -> float:
    """Revisions are numbered; a name that is not a number was not made by this program's past."""
    return int(revision) if re.fullmatch(r"\d{4}", revision) else float("inf")


def _shown(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
