"""Precedence of argument, environment, profile and default; secrets stay out of sight."""

from pathlib import Path

import pytest

from headrace.errors import ConfigurationInvalid
from headrace.settings import addresses, candidates, resolve, winner

PROFILE = """
[profiles.default]
api_url = "http://profile:8460"
bootstrap = "profile:8461"
key = "hr_user_profile"

[profiles.other]
bootstrap = "other:9000"
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "headrace"
    folder.mkdir()
    (folder / "config.toml").write_text(PROFILE)
    (folder / "config.toml").chmod(0o600)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_without_anything_it_is_a_local_server(tmp_path: Path) -> None:
    found = resolve(environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert found.bootstrap == ("127.0.0.1:8461",)
    assert found.api_url == "http://127.0.0.1:8460"
    assert found.key is None


def test_the_profile_is_read(environ: dict[str, str]) -> None:
    found = resolve(environ=environ)
    assert (found.bootstrap, found.api_url, found.key) == (
        ("profile:8461",),
        "http://profile:8460",
        "hr_user_profile",
    )
    assert resolve(environ={**environ, "HEADRACE_PROFILE": "other"}).bootstrap == ("other:9000",)


def test_the_environment_wins_over_the_profile(environ: dict[str, str]) -> None:
    environ |= {"HEADRACE_BOOTSTRAP": "env:1,env:2", "HEADRACE_KEY": "hr_user_env"}
    found = resolve(environ=environ)
    assert (found.bootstrap, found.key) == (("env:1", "env:2"), "hr_user_env")
    assert found.api_url == "http://profile:8460"


def test_a_url_in_the_environment_wins_over_single_variables(environ: dict[str, str]) -> None:
    environ |= {
        "HEADRACE_BOOTSTRAP": "env:1",
        "HEADRACE_URL": "headrace+tls://hr_user_url@a:1,b:2/team",
    }
    found = resolve(environ=environ)
    assert found.bootstrap == ("a:1", "b:2")
    assert (found.key, found.project, found.tls) == ("hr_user_url", "team", True)


def test_an_argument_wins_over_everything(environ: dict[str, str]) -> None:
    environ |= {"HEADRACE_URL": "headrace://hr_user_url@a:1/team", "HEADRACE_API_URL": "http://env"}
    found = resolve(
        bootstrap=["arg:7"], key="hr_user_arg", api_url="http://arg/", project="p", environ=environ
    )
    assert found.bootstrap == ("arg:7",)
    assert (found.key, found.api_url, found.project) == ("hr_user_arg", "http://arg", "p")


def test_the_key_is_in_no_repr_and_in_no_message() -> None:
    assert "secret" not in repr(resolve(key="hr_user_secret", environ={}))
    with pytest.raises(ConfigurationInvalid) as caught:
        resolve("kafka://hr_user_secret@host", environ={})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["[::1:99/team", "[nowhere]:99", "a\u2100b:99"])
def test_a_url_that_cannot_be_taken_apart_is_refused_without_its_key(host: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        resolve(f"headrace://hr_user_secret@{host}", environ={})
    assert "secret" not in str(caught.value)
    # What Python says of it names the host, with what stands before it.
    assert caught.value.__suppress_context__


def test_a_profile_that_is_missing_is_named_with_those_that_exist(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"nope.*default, other"):
        resolve(profile="nope", environ=environ)


def test_a_profile_that_others_can_read_is_warned_about(
    environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    (Path(environ["XDG_CONFIG_HOME"]) / "headrace" / "config.toml").chmod(0o644)
    resolve(environ=environ)
    assert "chmod 600" in caplog.text


def test_addresses_have_a_default_port_and_are_checked() -> None:
    assert addresses("one, two:9 ,[::1]") == ("one:8461", "two:9", "[::1]:8461")
    with pytest.raises(ConfigurationInvalid):
        addresses("host:port")


@pytest.mark.parametrize("text", ["garbage", "127.0.0.1:8460", "headrace://hr_x@here", "http://"])
def test_an_address_of_the_api_is_whole_or_refused_at_once(
    environ: dict[str, str], text: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match="REST API") as refused:
        resolve(api_url=text, environ=environ)
    assert "hr_x" not in str(refused.value)
    assert "'no scheme'" not in str(refused.value)


def test_the_current_profile_is_used_when_nobody_names_one(environ: dict[str, str]) -> None:
    path = Path(environ["XDG_CONFIG_HOME"]) / "headrace" / "config.toml"
    path.write_text('current = "other"\n' + PROFILE)
    assert resolve(environ=environ).bootstrap == ("other:9000",)
    path.write_text('current = "gone"\n' + PROFILE)
    with pytest.raises(ConfigurationInvalid, match='"gone"'):
        resolve(environ=environ)


def test_every_place_that_may_say_a_value_is_told_the_strongest_first(
    environ: dict[str, str],
) -> None:
    environ |= {"HEADRACE_BOOTSTRAP": "env:1"}
    places = candidates("headrace://k@url:1", environ=environ)["bootstrap"]
    assert [(p.source, p.value) for p in places] == [
        ("argument", ""),
        ("argument url", "url:1"),
        ("HEADRACE_URL", ""),
        ("HEADRACE_BOOTSTRAP", "env:1"),
        ("profile default", "profile:8461"),
        ("default", "127.0.0.1:8461"),
    ]
    assert winner(places) == "url:1"


def test_a_url_without_tls_is_not_mended_by_a_weaker_place(environ: dict[str, str]) -> None:
    environ |= {"HEADRACE_URL": "headrace+tls://b:1/team"}
    assert resolve("headrace://a:1", environ=environ).tls is False
    assert resolve("headrace://a:1", environ=environ).project == ""
