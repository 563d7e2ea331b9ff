"""Profiles by name, and where every value comes from; keys stay hidden."""

import json
from pathlib import Path

import pytest

from headrace.profiles import read_profiles
from headrace.settings import resolve
from tests.headrace.cli.conftest import Run


@pytest.fixture
def stored(headrace: Run, tmp_path: Path) -> Path:
    desired = ["--api-url", "http://work:1", "--bootstrap", "work:2", "--key-file", "-"]
    assert headrace("profile", "create", "work", *desired, stdin=b"hr_user_secret\n").code == 0
    return tmp_path / "headrace" / "config.toml"


def test_a_profile_holds_what_was_given_and_a_key_from_stdin(stored: Path) -> None:
    assert read_profiles(stored).members["work"] == {
        "api_url": "http://work:1",
        "bootstrap": "work:2",
        "key": "hr_user_secret",
    }
    assert stored.stat().st_mode & 0o777 == 0o600


def test_a_key_file_that_is_no_text_is_refused(headrace: Run) -> None:
    refused = headrace("profile", "create", "work", "--key-file", "-", stdin=b"\x7fELF\xff")
    assert (refused.code, refused.out) == (8, "")
    assert "The key file is not text" in refused.err


def test_no_format_shows_a_key(headrace: Run, stored: Path) -> None:
    for output in ("table", "wide", "json", "yaml", "csv"):
        for words in (["list"], ["use", "work"], ["current"]):
            assert "secret" not in headrace("profile", *words, "-o", output).out


def test_a_profile_in_use_is_the_current_one(headrace: Run, stored: Path) -> None:
    headrace("profile", "use", "work")
    assert headrace("profile", "current", "-o", "name").out == "work\n"
    environ = {"XDG_CONFIG_HOME": str(stored.parent.parent)}
    assert resolve(environ=environ).bootstrap == ("work:2",)


def test_an_existing_profile_is_replaced_only_on_request(headrace: Run, stored: Path) -> None:
    assert headrace("profile", "create", "work").code == 5
    assert headrace("profile", "create", "work", "--replace").code == 0


def test_a_profile_like_another_takes_its_addresses_and_never_its_key(
    headrace: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_BOOTSTRAP")
    monkeypatch.delenv("HEADRACE_API_URL")
    assert headrace("profile", "create", "shop", "--like", "work").code == 0
    assert read_profiles(stored).members["shop"] == {
        "api_url": "http://work:1",
        "bootstrap": "work:2",
    }
    assert headrace("profile", "create", "other", "--like", "nope").code == 8


def test_a_profile_that_is_not_there_is_told_with_those_that_are(
    headrace: Run, stored: Path
) -> None:
    for words in (["use", "nope"], ["current", "--profile", "nope"]):
        done = headrace("profile", *words)
        assert done.code == 8
        assert "known: work" in done.err


def test_explain_names_the_place_that_won_and_those_that_were_beaten(
    headrace: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_PROFILE", "work")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "env:1")
    shown = headrace("config", "explain", "bootstrap", "--bootstrap", "flag:1", "-o", "json").out
    rows = json.loads(shown)["items"]
    assert [(row["source"], row["value"], row["used"]) for row in rows] == [
        ("--bootstrap", "flag:1", True),
        ("--url", "", False),
        ("HEADRACE_URL", "", False),
        ("HEADRACE_BOOTSTRAP", "env:1", False),
        ("profile work", "work:2", False),
        ("default", "127.0.0.1:8461", False),
    ]


def test_explain_hides_the_key_wherever_it_is(
    headrace: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_KEY", "hr_user_secret_too")
    out = headrace("config", "explain", "--url", "headrace://hr_secret@h:1", "-o", "json").out
    assert "secret" not in out
    assert [r["source"] for r in json.loads(out)["items"] if r["value"] == "hidden"] == [
        "--url",
        "HEADRACE_KEY",
    ]
