"""The configuration: what is taken, what is refused and how the refusal helps."""

import hashlib
from pathlib import Path

import pytest

from dataplane.settings import SettingsInvalid, load, read_admin_key

NODE = """
[node]
cluster_id = "cl_1"
node_id = "nd_1"
data_dir = "node-1"
admin_key_file = "node.key"
system_organization_id = "org_s"
system_project_id = "prj_s"
"""
TOKEN = "hr_node_abcdefghij_" + "0" * 42 + "z_" + "2hL5hL"


def _file(folder: Path, text: str) -> Path:
    path = folder / "headrace.toml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_file_and_other_sections_are_left_alone(tmp_path: Path) -> None:
    settings = load(_file(tmp_path, NODE + '[api]\nanything = "goes"\n'))
    assert settings.node.data_dir == tmp_path / "node-1"
    assert settings.node.admin_key_file == tmp_path / "node.key"
    assert (settings.node.port, settings.metering.window_seconds) == (8461, 60)


def test_the_environment_beats_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NODE__PORT", "9000")
    monkeypatch.setenv("HEADRACE_METERING__WINDOW_SECONDS", "5")
    monkeypatch.setenv("HEADRACE_KEY", "not ours")
    settings = load(_file(tmp_path, NODE + "port = 8000\n"))
    assert (settings.node.port, settings.metering.window_seconds) == (9000, 5)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (NODE + "prot = 1\n", "did you mean port?"),
        (NODE + "[metring]\n", "did you mean metering?"),
        (NODE + "[metering]\nwindow_second = 1\n", "did you mean window_seconds?"),
        (NODE + "[metering]\nwindow_seconds = 7\n", "must divide 60"),
        (NODE + "port = 70000\n", "node.port"),
        ("[node]\n", "node.cluster_id"),
        ("[node", "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_a_way_out(
    tmp_path: Path, text: str, hint: str
) -> None:
    with pytest.raises(SettingsInvalid) as refusal:
        load(_file(tmp_path, text))
    assert hint in str(refusal.value)


@pytest.mark.parametrize("variable", ["HEADRACE_NODE__PROT", "HEADRACE_NODEE__PORT"])
def test_a_misspelt_variable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(SettingsInvalid, match="did you mean"):
        load(_file(tmp_path, NODE))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="cannot read"):
        load(tmp_path / "headrace.toml")


def test_the_node_key_is_kept_as_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    path.write_text(TOKEN + "\n")
    key = read_admin_key(path)
    secret = TOKEN.split("_")[3]
    assert key == ("abcdefghij", hashlib.sha256(secret.encode()).digest())


@pytest.mark.parametrize("text", ["", "hr_user_x", TOKEN[:-1] + "0", "é"])
def test_a_broken_node_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.key"
    path.write_text(text)
    with pytest.raises(SettingsInvalid) as refusal:
        read_admin_key(path)
    assert "00000" not in str(refusal.value)


@pytest.mark.parametrize(
    ("more", "address"),
    [
        ("", "127.0.0.1:9"),
        ('host = "0.0.0.0"\nadvertised_host = "node-1"\n', "node-1:9"),
        ('host = "::1"\n', "[::1]:9"),
        ('host = "::1"\nadvertised_host = "[fe80::2]"\n', "[fe80::2]:9"),
    ],
)
def test_a_node_is_advertised_so_that_its_port_can_be_told_from_its_address(
    tmp_path: Path, more: str, address: str
) -> None:
    assert load(_file(tmp_path, NODE + more)).node.address(9) == address
