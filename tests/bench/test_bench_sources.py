"""``bench.sources``: what comes is compared with what was sent."""

from __future__ import annotations

import pytest

from bench import sources, sources_load
from bench.sources_load import growth as growth_of
from support.postgres_server import running

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lftj[postgres]'")
pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'lftj[kafka]'")


def test_what_is_measured_is_right() -> None:
    with running(*sources.SETTINGS) as server:
        for statements in sources.FILLED.values():
            pulled = sources.from_postgres(server, statements, 300)
            assert (pulled.rows, pulled.commits > 0) == (300, True)
        way = sources.on_the_way(server, 200, 0.2)
        assert len(way) == 36 and (way > 0).all()
        looks = sources_load.load(server, 0.4)
        assert looks[-1].rows > 0 < looks[-1].folder and growth_of(looks) < 1
    assert sources.from_kafka(200).rows == 200
    put, got = sources.through_flight(2_000)
    assert (put.rows, put.commits, got.rows) == (2_000, 2, 2_000)


def test_what_is_missing_is_noticed() -> None:
    with pytest.raises(AssertionError, match="1 rows differ"):
        sources._check({1, 2}, {1, 2, 3})
