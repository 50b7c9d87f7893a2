"""Opening the store: one handle, which every other function of this package takes first."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from engine.errors import StoreError
from engine.store.migrate import WRITES, require_current_schema
from engine.store.migrate import migrate as migrate_schema

BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Database:
    """An open store. `engine` is shared by threads; each call takes a connection of its own from it."""

    engine: Engine
    url: str

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite (otherwise PostgreSQL)."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection in one read transaction, which on SQLite sees one moment throughout."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a connection in one write transaction: committed at the end, undone if anything raises."""
        with self.engine.connect().execution_options(**WRITES) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close every idle connection. The handle can still be used and then opens new ones."""
        self.engine.dispose()


def default_url() -> str:
    """Return GRPO_LAB_DATABASE_URL, or the SQLite file `runs.db` in the current folder."""
    return os.environ.get("GRPO_LAB_DATABASE_URL") or file_url(Path.cwd() / "runs.db")


def file_url(path: Path) -> str:
    """Return the URL of an SQLite file; signs that mean something in a URL (such as % and #) are written as codes."""
    return URL.create("sqlite", database=str(path.absolute())).render_as_string()


def open_database(
    url: str | None = None, *, read_only: bool = False, migrate: bool = True, busy_seconds: float = BUSY_SECONDS
) -> Database:
    """Open the store at `url` (default: `default_url()`), made and brought up to date unless `read_only`.

    `busy_seconds` is how long a call waits for another process's SQLite transaction before it fails.

    Raises:
        StoreError: if the place, driver or server is missing, the file is not a store, or the schema is newer.
    """
    shown = url or default_url()
    try:
        parsed = make_url(shown)
    except ArgumentError:
        message = f"database url={shown} is not a URL; use sqlite:///path/runs.db or postgresql+psycopg://…"
        raise StoreError(message) from None
    shown = parsed.render_as_string(hide_password=True)
    backend = parsed.get_backend_name()
    try:
        if backend == "sqlite":
            engine = _sqlite_engine(parsed.database, shown, read_only=read_only, busy_seconds=busy_seconds)
        elif backend == "postgresql":
            if parsed.drivername == "postgresql":
                # SQLAlchemy's own default driver differs between its versions.
                parsed = parsed.set(drivername="postgresql+psycopg")
            # A connection that the server closed while it was idle is replaced before use.
            engine = create_engine(parsed, pool_pre_ping=True)
            if read_only:
                engine = engine.execution_options(postgresql_readonly=True)
        else:
            raise StoreError(f"database url={shown} names {backend}; use sqlite or postgresql")
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StoreError(f"database url={shown} needs a driver: {error}; pip install 'psycopg[binary]'") from None
    try:
        if read_only:
            require_current_schema(engine)
        elif migrate:
            migrate_schema(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(
            f"database url={shown} cannot be opened: {_cause(error)}; check the place and its rights"
        ) from error
    except BaseException:
        engine.dispose()
        raise
    return Database(engine=engine, url=parsed.render_as_string(hide_password=False))


def _sqlite_engine(path: str | None, shown: str, *, read_only: bool, busy_seconds: float) -> Engine:
    if not path or path == ":memory:":
        raise StoreError(f"database url={shown} has no file; the store is shared by processes, so name a file")
    file = Path(path)
    if not file.absolute().parent.is_dir():
        raise StoreError(f"database url={shown}: the folder {file.absolute().parent} does not exist; make it first")
    if read_only and not file.exists():
        raise StoreError(f"database url={shown} does not exist; start the worker or queue a run, which makes it")
    # An absolute path, because a process may change its folder between two connections.
    engine = create_engine(
        URL.create("sqlite", database=str(file.absolute())),
        connect_args={"timeout": busy_seconds, "isolation_level": None, "check_same_thread": False},
        pool_size=8,
        max_overflow=24,
    )

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        # Readers go on while a run writes, and the writer never waits for them.
        _enter_wal(connection, busy_seconds)
        # In WAL mode a power cut can lose the last transactions but never damages the file; FULL would cost
        # an fsync per step.
        connection.execute("PRAGMA synchronous=NORMAL")
        # Off by default: rows of a deleted group would stay behind.
        connection.execute("PRAGMA foreign_keys=ON")
        # SQLite has one writer at a time: wait for it. Several runs, pages and the worker share the file.
        connection.execute(f"PRAGMA busy_timeout={int(busy_seconds * 1000)}")
        if read_only:
            # mode=ro in the URL would fail in WAL mode where the shared-memory file is yet to be made.
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver is in autocommit mode; so BEGIN is ours. A transaction that reads first and then writes
        # would fail at once, whatever the timeout, if another process wrote in between: take the lock first.
        writes = connection.get_execution_options().get("store_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _enter_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to WAL. On a new file the switch needs the file alone and does not wait for it by itself."""
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def _cause(error: SQLAlchemyError) -> Any:
    return getattr(error, "orig", None) or error
