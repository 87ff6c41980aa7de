"""Where the results of sweeps are kept: one SQLite file in WAL mode.

A row for each measurement, by the hash of everything that determines it
(`ciphermill.sweeps.work.Point.key`). A result is written in a transaction of
its own as soon as it is there: whatever ends the process, and however, what
has been measured stays, and what is in the store is not measured again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import cached, paths
from .._core import InputError

#: Raised when the table's layout changes; older files are refused, not guessed at.
LAYOUT = 1
TABLE = """
CREATE TABLE IF NOT EXISTS measurements (
    key TEXT PRIMARY KEY,
    point TEXT NOT NULL,
    measurement TEXT,
    failure TEXT,
    seconds REAL NOT NULL
) WITHOUT ROWID
"""
#: Keys looked for in one query; SQLite's own limit is far above.
CHUNK = 500
#: Rows of older versions have none; they were of another build of the core.
HASH = "ALTER TABLE measurements ADD COLUMN hash TEXT"


def digest(key: str, measurement: str | None, failure: str | None) -> str:
    """What a row must hash to, to be believed."""
    return hashlib.sha256(json.dumps([key, measurement, failure]).encode()).hexdigest()


class Store:
    """An open store. Used from one thread; several processes may share a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        paths.check_writable(path, "--store")
        try:
            self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self.db.execute("PRAGMA journal_mode = WAL")
            # A commit survives the end of the process; an outage may take the last few.
            self.db.execute("PRAGMA synchronous = NORMAL")
            layout = self.db.execute("PRAGMA user_version").fetchone()[0]
            if layout not in (0, LAYOUT):
                raise InputError(
                    f"{paths.shown(path)}: a store of layout {layout}, this version writes {LAYOUT}; name another with --store"
                )
            self.db.execute(TABLE)
            if "hash" not in [column[1] for column in self.db.execute("PRAGMA table_info(measurements)")]:
                self.db.execute(HASH)
            self.db.execute(f"PRAGMA user_version = {LAYOUT}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"{paths.shown(path)}: not a store that can be used: {error}; name another with --store"
            ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()

    def find(self, keys: Iterable[str]) -> dict[str, tuple[dict[str, Any] | None, str | None]]:
        """What is known of these keys: measurement or failure, by key."""
        keys = list(keys)
        out: dict[str, tuple[dict[str, Any] | None, str | None]] = {}
        for at in range(0, len(keys), CHUNK):
            chunk = keys[at : at + CHUNK]
            marks = ",".join("?" * len(chunk))
            try:
                rows = self.db.execute(
                    f"SELECT key, measurement, failure, hash FROM measurements WHERE key IN ({marks})", chunk
                ).fetchall()
            except sqlite3.Error as error:
                raise InputError(
                    f"{paths.shown(self.path)}: not a store that can be used: {error}; name another with --store"
                ) from None
            for key, measurement, failure, known in rows:
                if known != digest(key, measurement, failure):
                    cached.note(f"{paths.shown(self.path)}: a result is damaged, and is measured anew")
                    continue
                out[key] = (None if measurement is None else json.loads(measurement), failure)
        return out

    def add(
        self,
        key: str,
        point: Mapping[str, Any],
        measurement: Mapping[str, Any] | None,
        failure: str | None,
        seconds: float,
    ) -> None:
        """Keep a result. It takes the place of a failure, which was tried again, and of what was damaged."""
        text = None if measurement is None else json.dumps(measurement)
        self.db.execute(
            "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET measurement = excluded.measurement,"
            " failure = excluded.failure, seconds = excluded.seconds, hash = excluded.hash"
            " WHERE measurements.measurement IS NULL OR excluded.measurement IS NOT NULL",
            (key, json.dumps(point), text, failure, seconds, digest(key, text, failure)),
        )

    def __len__(self) -> int:
        count: int = self.db.execute("SELECT count(*) FROM measurements").fetchone()[0]
        return count
