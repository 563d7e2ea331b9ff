"""Refusals: what is said fits into a status, whatever names it speaks of."""

import pytest

from dataplane.errors import MESSAGE_BYTES_MAX, Refused

STATUS_BYTES_MAX = 3000


@pytest.mark.parametrize("character", ["a", "\xe9", "\u20ac", "\U0001f4a5"])
def test_a_long_name_is_cut_at_a_character_and_its_length_is_said(character: str) -> None:
    refused = Refused("GROUP_NOT_FOUND", f"there is no group {character * 100_000}")
    assert len(refused.message.encode()) <= MESSAGE_BYTES_MAX + 30
    assert refused.message.startswith(f"there is no group {character * 10}")
    assert refused.message.endswith(".. (100018 characters)")
    assert len(refused.status()) < STATUS_BYTES_MAX


def test_a_message_of_ordinary_length_is_left_as_it_is() -> None:
    assert Refused("INVALID_ARGUMENT", "x" * MESSAGE_BYTES_MAX).message == "x" * MESSAGE_BYTES_MAX
