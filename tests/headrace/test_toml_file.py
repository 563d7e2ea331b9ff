"""Small TOML files appear whole, and only for whom they are meant."""

import tomllib
from pathlib import Path

from headrace.toml_file import toml_text, write_whole


def test_a_file_appears_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    write_whole(path, "secret\n", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["node.key"]


def test_what_is_written_is_toml() -> None:
    sections: dict[str, dict[str, str | int | bool]] = {
        "api": {"port": 1, "on": True, "name": 'a "quoted" \\ name'}
    }
    assert tomllib.loads(toml_text(sections)) == sections


def test_the_nameless_section_stands_on_top() -> None:
    text = toml_text({"": {"current": "work"}, "profiles.work": {"key": "a"}})
    assert tomllib.loads(text) == {"current": "work", "profiles": {"work": {"key": "a"}}}
