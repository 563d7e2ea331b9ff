"""Configuration: the file, and over it the environment key by key."""

from pathlib import Path

import pytest

from api.__main__ import main
from api.settings import Settings, SettingsInvalid

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[api]\nprot = 1\n", "api.prot: there is no such key; known: port"),
        ('[api]\nport = "x"\n', "api.port: Input should be a valid integer"),
        ("api = 5\n", "api is no section"),
        ("[api", "is not TOML"),
        ("# caf\xe9", "is not TOML"),
        ('[database]\nurl = ["postgresql://u:secret@h/d"]\n', "database.url"),
        ('[database]\nurl = "secret"\n', "database.url"),
        ('[database]\nurl = "sqlite:////nowhere/secret.db"\n', "No such file"),
        ('[database]\nurl = "sqlite:///headrace.toml"\n', "the database cannot be used"),
        ('[api]\nlog_level = "loud"\n', "api.log_level"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line_without_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "headrace.toml"
    path.write_text(text, encoding="latin-1")
    # A database may be back at the next try.
    assert main(["serve", "--config", str(path)]) == (1 if "sqlite" in text else 2)
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
    assert "secret" not in line.replace("/nowhere/secret.db", "")


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_API__REQUESTS_PER_SECONDS", "5")
    with pytest.raises(SettingsInvalid, match="known: requests_per_second"):
        Settings.load(None)
