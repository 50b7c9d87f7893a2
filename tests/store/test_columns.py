from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import sqlite

from engine.store.columns import UtcDateTime

DIALECT = sqlite.dialect()


def test_a_time_of_another_zone_is_stored_in_utc():
    in_tokyo = datetime(2026, 1, 1, 9, 0, tzinfo=timezone(timedelta(hours=9)))
    assert UtcDateTime().process_bind_param(in_tokyo, DIALECT) == datetime(2026, 1, 1, 0, 0, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="has no zone"):
        UtcDateTime().process_bind_param(datetime(2026, 1, 1), DIALECT)


def test_a_time_that_sqlite_gives_back_without_a_zone_is_utc():
    read = UtcDateTime().process_result_value(datetime(2026, 1, 1), DIALECT)
    assert read == datetime(2026, 1, 1, tzinfo=UTC)
