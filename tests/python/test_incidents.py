"""Broken files as they happen: one of each kind, and what `verify` says of it. `make incidents` tries all."""

from __future__ import annotations

import pytest
from tests.incidents.case import Case, Step, form_of
from tests.incidents.cases import cases
from tests.incidents.judge import Judged, Kind, judge
from tests.incidents.strays import Stray, faults

# The reason of each, as JSON names it. Where more of them are right the numbers below are lowered: they never grow.
REASONS = {
    "torn-active": "interrupted_write",
    "torn-chunked": "interrupted_write",
    "torn-preallocated": "interrupted_write",
    "flip-sealed-value": "flipped_bit",
    "flip-tenant-value": "flipped_bit",
    "misdirected-active-4k": "duplicated_sector",
    "stale-active-4k": "stale_data",
    "stale-tenant-4k": "changed_bytes",
    "zeroed-active-64k": "zeroed_sector",
    "zeroed-tail-active": "zeroed_tail",
    "truncated-sealed-640k": "truncated",
    "truncated-chunked-180k": "truncated",
    "missing-active-4k": "missing_bytes",
    "missing-active-7": "missing_bytes",
    "missing-chunked-4k": "missing_bytes",
    "crlf-sealed": "text_conversion",
    "concatenated-sealed": "concatenated",
    "repeated-active-4k": "repeated_block",
    "inserted-active-4k": "inserted_bytes",
    "latin1-active": "reencoded",
    "swapped-active-32": "byte_order",
    "gzip-sealed": "compressed",
    "html": "other_content",
    "empty-sealed": "empty",
    "key-sealed": "wrong_key",
    "dialect-oplog": "other_dialect",
    "index-of-another": "stale_index",
    "log-older-segment": "truncated",
    "log-missing-segment": "missing_segment",
    "log-other-sealed": "other_segment",
}
WRONG_REASONS = 0
WRONG_STEPS = 0
WRONG_PROOFS = 0
OTHER_FAULTS = 0

STRAYS = 200


@pytest.fixture(scope="module")
def every_case() -> dict[str, Case]:
    made = list(cases())
    assert len({own.name for own in made}) == len(made)
    return {own.name: own for own in made}


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.more)], ids=["some", "all"])
def judged(
    every_case: dict[str, Case], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> list[Judged]:
    names = list(REASONS)[:: request.param]
    return [judge(every_case[name], tmp_path_factory.mktemp(name)) for name in names]


def test_causes_are_named(judged: list[Judged]) -> None:
    wrong = [own.case.name for own in judged if own.answer.reason != REASONS[own.case.name]]
    assert len(wrong) <= WRONG_REASONS, wrong


def test_the_next_step_is_right(judged: list[Judged]) -> None:
    wrong = {own.case.name: own.answer.command for own in judged if not own.is_advised}
    assert len(wrong) <= WRONG_STEPS, wrong


def test_advice_loses_nothing(judged: list[Judged]) -> None:
    assert not [fault for own in judged for fault in own.faults if fault.kind == Kind.LOSES]


def test_answers_are_short_true_and_do_not_contradict_themselves(judged: list[Judged]) -> None:
    found = [(own.case.name, *fault) for own in judged for fault in own.faults]
    assert len(found) <= OTHER_FAULTS, found


def test_the_truth_is_about_the_file(every_case: dict[str, Case]) -> None:
    assert all(REASONS[name] in every_case[name].reasons for name in REASONS)
    assert {own.incident for own in every_case.values()} == {every_case[name].incident for name in REASONS}
    assert all(own.reasons and own.steps for own in every_case.values())


def test_the_same_files_are_made_each_time(every_case: dict[str, Case]) -> None:
    for own in cases():
        before = every_case[own.name].files
        # A parity sidecar has an identifier of its own.
        assert all(data == before[name] for name, data in own.files.items() if not name.endswith(".par")), own.name


def test_nothing_false_is_proven() -> None:
    found = [fault for number in range(STRAYS) for fault in faults(Stray(number))]
    assert len(found) <= WRONG_PROOFS, found


@pytest.mark.parametrize(
    ("command", "step"),
    [
        (None, Step.RESTORE),
        ("gunzip -c a.sealed > b.sealed && seglake verify b.sealed", Step.DECOMPRESS),
        ("zstd -dc a.tenant > b.tenant && seglake verify b.tenant", Step.DECOMPRESS),
        ("cat a > b && printf '\\156' | dd of=b bs=1 seek=3 conv=notrunc && seglake verify b", Step.PATCH),
        ("seglake extract a --range :5 --range 9: > b && seglake verify b", Step.EXTRACT),
        ("seglake extract a --range 0:64 --hex", Step.LOOK),
        ("seglake recover a b", Step.RECOVER),
        ("seglake index --overwrite a", Step.INDEX),
        ("seglake verify --key-file KEY a", Step.KEY),
        ("ls", Step.OTHER),
    ],
)
def test_the_form_of_a_command(command: str | None, step: Step) -> None:
    assert form_of(command) == step
