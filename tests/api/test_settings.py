"""Configuration: the file, and over it the environment key by key."""

from pathlib import Path

import pytest

from api.__main__ import main
from api.settings import Settings

TEXT = """
[api]
port = 9000
host = "0.0.0.0"
[database]
url = "sqlite:///control.db"
[node]
admin_key_file = "node.key"
data_dir = "somebody else's"
[reports]
uri = "file:///srv/reports"
"""


def test_the_environment_beats_the_file_key_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "headrace.toml"
    path.write_text(TEXT)
    monkeypatch.setenv("HEADRACE_API__PORT", "9001")
    settings = Settings.load(path)
    assert (settings.api.host, settings.api.port) == ("0.0.0.0", 9001)


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "headrace.toml"
    path.write_text(TEXT)
    settings = Settings.load(path)
    assert settings.database.url == f"sqlite:///{tmp_path}/control.db"
    assert settings.node.admin_key_file == tmp_path / "node.key"
    assert settings.reports.uri == "file:///srv/reports"
    assert settings.reports.logs == str(tmp_path / ".headrace/logs")


def test_without_a_file_the_defaults_hold() -> None:
    assert Settings.load(None).api.port == 8460


def test_a_value_that_cannot_be_used_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "headrace.toml"
    path.write_text('[api]\nworkers = "many"\n')
    assert main(["serve", "--config", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"headrace: {path}: api.workers: ")
    assert told.count("\n") == 1
