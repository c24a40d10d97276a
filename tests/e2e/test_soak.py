"""What the long series share: which points are taken, and what is told of them."""

import contextlib
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/soak"))
import soak  # noqa: E402

KINDS = ["service", "agent", "rank"]


def numbers(*argv):
    return soak.numbers(soak.arguments("kill", 6, KINDS, argv), KINDS)


def test_kinds_take_turns_and_a_number_has_the_same_kind_in_every_run():
    whole = numbers()
    assert [number for number, _ in whole] == [1, 2, 3, 4, 5, 6]
    assert numbers("--first", "5", "--points", "1") == [whole[4]]
    assert numbers("--kind", whole[1][1], "--points", "2") == [whole[1], whole[4]]


def test_so_many_of_each_kind():
    taken = [kind for _, kind in numbers("--each", "100")]
    assert {kind: taken.count(kind) for kind in taken} == dict.fromkeys(KINDS, 100)
    assert [kind for _, kind in numbers("--each", "2", "--kind", "agent")] == ["agent", "agent"]


@contextlib.contextmanager
def series(home):
    def point(chance, home):
        assert chance.kind != "rank", "the fifth wheel"
        return "well", {"kills": 3, "back_s": 0.5}
    yield point


def test_a_run_tells_its_progress_and_writes_a_summary_by_kind(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(soak, "EVIDENCE", tmp_path / "build/soak")
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    monkeypatch.setattr(soak, "PROGRESS_EVERY", 2)
    monkeypatch.setattr(sys, "argv", ["wheel.py", "--each", "2", "--seed", "7"])
    with pytest.raises(SystemExit) as ended:
        soak.main(series, kinds=KINDS)
    assert ended.value.code == 1
    page = (tmp_path / "build/soak/wheel_seed_7.md").read_text()
    assert "`./dev soak wheel --each 2 --seed 7`" in page
    for line in ("6 of 6 points of wheel", "service: 2 points, 0 failed", "rank: 2 points, 2 failed", "the fifth wheel", "kills: 12 in all",
                 "back_s: median 0.50, worst 0.50"):
        assert line in page, page
    told = capsys.readouterr().out
    assert len(re.findall(r"wheel: [24] of 6 points, [12] failed, about 0 min to go", told)) == 2, told
    assert len(list((tmp_path / "build/soak").glob("wheel-*/point-*/why.txt"))) == 2


def test_a_run_begins_no_point_after_its_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(soak, "EVIDENCE", tmp_path / "build/soak")
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["wheel.py", "--minutes", "0.0000001"])
    with pytest.raises(SystemExit):
        soak.main(series, points=3, minutes=10)
    assert "0 of 3 points of wheel" in capsys.readouterr().out
