"""The soak's own facts: that it checks, and what its counters call too much.  No time is asserted."""

from __future__ import annotations

from dataclasses import fields, replace

import pyarrow as pa
import pytest

from bench.soak import __main__ as soak
from bench.soak.mixed import MixedSoak
from bench.soak.sizes import Sizes
from bench.soak.steady import FEWEST, WORST, Steadiness
from lftj.values import collector


def test_a_short_soak_checks_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--changes", "300", "--check-every", "100", "--seed", "3"]) == 0
    assert capsys.readouterr().out.startswith("300 changes in ")


def test_a_soak_at_constant_data_holds_as_much_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, structure by structure; what comes anew would have doubled each of them."""
    monkeypatch.setattr(collector, "LEAST_ADDED", 64)
    soaked = MixedSoak(5)
    sizes = []
    for _ in range(4):
        made = 0
        while made < 800:
            made += soaked.transact(200)
            sizes.append(Sizes.of(soaked.workspace))
    soaked.check()
    half = len(sizes) // 2
    for name in ("tuples", "run_tuples", "values", "codes", "labels", "slots", "records"):
        first, second = ([getattr(size, name) for size in part] for part in (sizes[:half], sizes[half:]))
        assert max(second) <= 1.3 * max(first) + 64, name
    added = sum(soaked.workspace.domains.of(type_).n_added for type_ in (pa.string(), pa.decimal128(12, 2)))  # type: ignore[attr-defined]
    assert added > 3 * sizes[-1].values


def test_a_soak_prints_what_is_held(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--changes", "40", "--sizes-every", "20"]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert " changes: tuples " in first
    assert "dictionary bytes" in first
    assert "slowest commit" in first


def test_a_soak_says_where_a_head_went_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: MixedSoak) -> None:
        raise AssertionError("a head is wrong")

    monkeypatch.setattr(MixedSoak, "check", broken)
    assert soak.main(["--changes", "50", "--check-every", "10"]) == 1
    assert "seed 1, between changes 0 and" in capsys.readouterr().out


def test_a_soak_of_single_edges_is_judged_by_its_counters(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--edges", "3000", "--changes", "400", "--check-every", "200"]) == 0
    assert "no commit took more than" in capsys.readouterr().out


def test_what_is_found_over_the_whole_run_ends_it_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def grown(self: Steadiness) -> None:
        raise AssertionError("values grew")

    monkeypatch.setattr(Steadiness, "check", grown)
    assert soak.main(["--edges", "300", "--changes", "4"]) == 1
    assert "seed 1, over all 4 changes: AssertionError: values grew" in capsys.readouterr().out


def steady(taken: list[int], rows: int = 1) -> Steadiness:
    found = Steadiness()
    for operations in taken:
        found.enter_counts(rows, operations, moved=operations, seconds=1.0)
    return found


def test_one_commit_that_takes_too_much_is_named() -> None:
    """Beside what ordinary ones take for as many rows; so a large commit may take more."""
    ordinary = [40, 50, 60] * FEWEST
    steady([*ordinary, WORST * 90]).check()
    with pytest.raises(
        AssertionError, match=r"transaction 301, of 1 rows .* took 2,100 operations, 21.0 tim"
    ):
        steady([*ordinary, (WORST + 1) * 100]).check()
    large = steady(ordinary)
    large.enter_counts(rows=100, operations=(WORST + 1) * 100, moved=0, seconds=1.0)
    large.check()
    moves = steady(ordinary)
    moves.enter_counts(rows=1, operations=1, moved=(WORST + 1) * 4096, seconds=1.0)
    with pytest.raises(AssertionError, match="moved 86,016 rows"):
        moves.check()
    steady([1, 1, 10_000]).check()  # too few to say


@pytest.mark.parametrize("name", ["values", "labels", "record_bytes", "tuples"])
def test_what_grows_is_named(name: str) -> None:
    same = Sizes(**dict.fromkeys((field.name for field in fields(Sizes)), 1_000_000))
    for last, grows in ((1_200_000, False), (1_500_000, True)):
        found = steady([1])
        for number in range(20):
            found.enter_sizes(replace(same, **{name: last}) if number == 15 else same)
        if grows:
            with pytest.raises(AssertionError, match=f"{name.replace('_', ' ')} grew"):
                found.check()
        else:
            found.check()
