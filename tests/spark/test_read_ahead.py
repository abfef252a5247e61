"""Decoding ahead changes when batches are made, and nothing else."""

import threading
from collections.abc import Generator

import pytest

from seglake.spark.decode import read_ahead


def numbers(count: int, made: list[int], closed: list[str]) -> Generator[int]:
    """Counts, and notes what was made and which thread ended it."""
    try:
        for number in range(count):
            made.append(number)
            yield number
    finally:
        closed.append(threading.current_thread().name)


def test_all_items_in_their_order() -> None:
    made: list[int] = []
    closed: list[str] = []
    assert list(read_ahead(numbers(1000, made, closed))) == list(range(1000))
    assert closed == ["seglake read-ahead"]
    assert list(read_ahead(numbers(0, made, closed))) == []


def test_nothing_is_made_before_it_is_asked_for_and_no_more_than_two_ahead() -> None:
    made: list[int] = []
    items = read_ahead(numbers(1000, made, []))
    threads = threading.active_count()
    assert made == []
    for asked in range(20):
        assert next(items) == asked
        assert len(made) <= asked + 3
    items.close()
    assert len(made) <= 23
    assert threading.active_count() == threads


def test_another_item_is_made_meanwhile() -> None:
    second = threading.Event()

    def two() -> Generator[int]:
        yield 1
        second.set()
        yield 2

    items = read_ahead(two())
    assert next(items) == 1
    assert second.wait(60)  # for as long as nobody asks for it
    assert list(items) == [2]


def test_an_error_comes_behind_the_items_in_front_of_it() -> None:
    def failing() -> Generator[int]:
        yield 1
        yield 2
        raise OSError("the disk is gone")

    found: list[int] = []
    with pytest.raises(OSError, match="the disk is gone") as error:
        for item in read_ahead(failing()):
            found.append(item)
    assert found == [1, 2]
    assert "failing" in [entry.name for entry in error.traceback]


def test_who_stops_early_closes_what_is_read() -> None:
    made: list[int] = []
    closed: list[str] = []
    items = read_ahead(numbers(1000, made, closed))
    assert [next(items), next(items)] == [0, 1]
    items.close()
    assert closed == ["seglake read-ahead"]
    assert len(made) <= 5
    assert not [thread for thread in threading.enumerate() if thread.name == "seglake read-ahead"]
