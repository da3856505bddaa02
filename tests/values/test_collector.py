"""laws: what holds codes keeps their values, a lease keeps all, and the rest goes in bounded pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values import collector
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domains import Domains
from maintenance.groups.order_labels import OrderLabels


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"LEAST_ADDED": 8, "LEAST": 4, "PACE": 1, "LEAST_PACE": 1}.items():
        monkeypatch.setattr(collector, name, number)


def strings(domains: Domains) -> DictionaryDomain:
    domain = domains.of(pa.string())
    assert isinstance(domain, DictionaryDomain)
    return domain


def texts(first: int, end: int) -> pa.Array:
    return pa.array([f"value {number}" for number in range(first, end)])


def rest_of_a_walk(domains: Domains) -> int:
    """Advance until nothing is left to do; how often."""
    domains.collector.advance()
    for turn in range(10_000):
        if domains.collector._walk is None:
            return turn
        domains.collector.advance()
    raise AssertionError("the walk does not end")


def test_relations_and_their_versions_keep_values() -> None:
    domains = Domains()
    string = strings(domains)
    relation = Relation.from_table("r", pa.table({"n": pa.array(range(20)), "s": texts(0, 20)}), domains)
    first = RelationVersion(relation)
    codes = string.encode(texts(20, 22))
    second = first.advance([np.array([100, 101]), codes], np.array([1, 1]))
    del relation, codes
    string.encode(texts(50, 70))
    rest_of_a_walk(domains)
    assert string.n_values == 22
    held = second.relation().to_table().column("s").to_pylist()
    assert sorted(held) == sorted(texts(0, 22).to_pylist())
    del first, second
    string.encode(texts(70, 100))
    rest_of_a_walk(domains)
    assert string.n_values <= 30, "what came during the walk stays until the next"


def test_a_version_made_during_a_walk_keeps_what_is_new_to_it() -> None:
    domains = Domains()
    string = strings(domains)
    version = RelationVersion(Relation.from_table("r", pa.table({"s": texts(0, 40)}), domains))
    lease = domains.collector.lease()
    early = string.encode(texts(100, 101))
    domains.collector.advance()
    assert domains.collector._walk is not None
    for _ in range(50):
        domains.collector.advance()
    assert domains.collector._walk is not None, "the lease is older"
    following = version.advance([early], np.array([1]))
    del lease, version
    rest_of_a_walk(domains)
    assert string.n_values == 41
    assert "value 100" in following.relation().to_table().column("s").to_pylist()


def test_a_lease_that_is_younger_than_a_walk_does_not_stop_it() -> None:
    domains = Domains()
    string = strings(domains)
    older = domains.collector.lease()
    string.encode(texts(0, 100))
    domains.collector.advance()
    lease = domains.collector.lease()
    string.encode(texts(50, 60))
    del older
    rest_of_a_walk(domains)
    assert string.n_values == 10
    assert string.decode(string.encode(texts(50, 60)), pa.string()).equals(texts(50, 60))
    del lease


def test_codes_are_used_again_and_order_labels_forget_them() -> None:
    domains = Domains()
    string = strings(domains)
    labels = OrderLabels(string)
    highest = 0
    for turn in range(30):
        values = texts(turn * 20, turn * 20 + 20)
        relation = Relation.from_table("r", pa.table({"s": values}), domains)
        codes = string.encode(values)
        order = np.argsort(labels.labels(codes))
        assert values.take(pa.array(order)).to_pylist() == sorted(values.to_pylist())
        assert string.decode(labels.codes(labels.labels(codes)), pa.string()).equals(values)
        assert string.ranks()[codes].argsort().tolist() == order.tolist()
        rest_of_a_walk(domains)
        labels.check_invariants()
        highest = max(highest, int(codes.max()))
    del relation
    assert highest < 100
    assert len(labels) < 100


def test_a_piece_is_bounded() -> None:
    """However much there is, one call walks a few codes."""
    domains = Domains()
    string = strings(domains)
    relation = Relation.from_table("r", pa.table({"s": texts(0, 5000)}), domains)
    domains.collector.advance()
    walk = domains.collector._walk
    assert walk is not None
    assert walk.n_walked <= 4 + 1, "values that came before it began do not hasten it"
    string.encode(texts(4999, 5001))
    domains.collector.advance()
    assert walk.n_walked <= 2 * (4 + 1) + 1
    assert rest_of_a_walk(domains) > 500
    assert string.n_values == relation.n_rows + 1 == 5001


def test_large_batches_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that come by the thousand, and go with the next thousand."""
    monkeypatch.setattr(collector, "LEAST_PACE", 4)
    monkeypatch.setattr(collector, "MOST", 64)
    domains = Domains()
    string = strings(domains)
    relations: list[Relation] = []
    for turn in range(20):
        table = pa.table({"s": texts(turn * 1000, turn * 1000 + 1000)})
        relations = [*relations[-1:], Relation.from_table("r", table, domains)]
        domains.collector.advance()
        assert string.n_values <= 5000


def test_columns_of_numbers_that_are_no_codes_do_no_harm() -> None:
    """Row numbers stand in a column of any type."""
    domains = Domains()
    string = strings(domains)
    schema = Relation.from_table("r", pa.table({"s": texts(0, 1)}), domains).schema
    numbers = Relation.from_codes("n", schema, [np.array([-5, 0, 1 << 50])])
    string.encode(texts(1, 20))
    rest_of_a_walk(domains)
    assert string.n_values == 1
    assert numbers.n_rows == 3
