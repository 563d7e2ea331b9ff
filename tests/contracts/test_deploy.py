"""What is deployed fits what is there: modules, verbs, options, settings, ports; scripts parse."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

from api.settings import ApiSettings, Settings
from dataplane.settings import MeteringSection, NodeSection
from tests.support.source import ROOT, files

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SCRIPTS = sorted([*DEPLOY.glob("*.sh"), ROOT / ".ci" / "run"])
IMAGES = (DEPLOY / "images" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCUMENTS = [
    *(path for path in DEPLOY.rglob("*") if path.is_file() and "__pycache__" not in path.parts),
    ROOT / "docs" / "operating" / "deploying.md",
]
SETUP = (DEPLOY / "setup.sh").read_text()
# What Makefile, compose and the client read themselves.
OTHERS = {"HEADRACE_POSTGRES_PASSWORD", "HEADRACE_ADVERTISED_HOST", "HEADRACE_MODULES"}
OTHERS |= {
    "HEADRACE_ENGINE_SIM",
    "HEADRACE_PROFILE",
    "HEADRACE_BOOTSTRAP",
    "HEADRACE_NODE_KEY",
    "HEADRACE_API_URL",
    "HEADRACE_KEY",
}
PORTS = {
    "api": {ApiSettings().port},
    "dataplane": {
        NodeSection.model_fields["port"].default,
        NodeSection.model_fields["http_port"].default,
    },
    "reports": set[int](),
}


def known_settings() -> set[str]:
    """Every variable that a process of ours reads."""
    sections = {
        name: set(getattr(field.annotation, "model_fields", {}))
        for name, field in Settings.model_fields.items()
    }
    sections["node"] |= set(NodeSection.model_fields)
    sections["metering"] = set(MeteringSection.model_fields)
    return {
        f"HEADRACE_{section.upper()}__{key.upper()}"
        for section, keys in sections.items()
        for key in keys
    }


def test_every_variable_that_is_named_is_a_setting() -> None:
    known = known_settings() | OTHERS
    unknown = {
        (str(path.relative_to(ROOT)), name)
        for path in DOCUMENTS
        for name in re.findall(r"\bHEADRACE_[A-Z_]+\b", path.read_text())
        if name not in known
    }
    assert not unknown


@cache
def help_of(*command: str) -> str:
    """What a module or its verb says of itself; asked once, for it takes a second."""
    return subprocess.run(
        [sys.executable, "-m", *command, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def helped(module: str, arguments: str) -> None:
    """The module knows the verb, if there is one, and every option behind it."""
    verbs = [word for word in arguments.split()[:1] if not word.startswith("-")]
    told = help_of(module, *verbs)
    options = re.findall(r"--[\w-]+", arguments)
    assert all(option in told for option in options), (module, arguments)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_module_that_knows_its_options(unit: Path) -> None:
    started = re.search(r"^ExecStart=\S+ -m (\w+) (.*)$", unit.read_text(), flags=re.M)
    assert started is not None
    helped(*started.groups())
    assert "--config" in started.group(2)


def test_the_images_start_modules_that_know_their_options() -> None:
    found = re.findall(r'^ENTRYPOINT \["python", "-m", "(\w+)"\]\nCMD \[(.*)\]$', IMAGES, re.M)
    assert sorted(module for module, _ in found) == ["api", "api", "dataplane"]
    for module, command in found:
        helped(module, re.sub(r'[",]+', " ", command))


def test_the_services_are_of_our_images_and_know_their_options() -> None:
    targets = set(re.findall(r"^FROM ground AS (\w+)$", IMAGES, re.M))
    for name, service in COMPOSE["services"].items():
        if "build" not in service:
            continue
        assert service["build"]["target"] in targets, name
        if "command" in service and "entrypoint" not in service:
            helped("api", " ".join(service["command"]))


def test_the_ports_are_those_of_the_settings() -> None:
    images = re.split(r"^FROM ground AS (\w+)$", IMAGES, flags=re.M)[1:]
    for target, text in zip(images[::2], images[1::2], strict=True):
        exposed = {
            int(port)
            for port in re.findall(r"\d+", " ".join(re.findall(r"^EXPOSE (.*)", text, re.M)))
        }
        assert exposed == PORTS[target], target
        assert {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", text)} <= exposed
    for name, service in COMPOSE["services"].items():
        ours = PORTS.get(service.get("build", {}).get("target"), set())
        for published in service.get("ports", ()):
            host, _, inside = published.split(":")
            assert host == "127.0.0.1", "cleartext is published on the loopback alone"
            assert int(inside) in ours, (name, published)


def test_a_service_refers_to_others_by_a_name_and_port_that_are_there() -> None:
    services = COMPOSE["services"]
    text = str(services)
    for name, port in re.findall(r"//(?:[\w:${}?. /-]*@)?([a-z]+(?:-\d)?):(\d+)", text):
        target = services[name].get("build", {}).get("target")
        assert name == "spark" or int(port) in PORTS[target], (name, port)


@pytest.mark.parametrize("name", ["api", "dataplane", "reports"])
def test_no_image_runs_as_root_or_holds_a_secret(name: str) -> None:
    text = IMAGES.partition(f"FROM ground AS {name}\n")[2].partition("\nFROM ")[0]
    assert "\nUSER 10001:10001\n" in text
    assert not re.search(
        r"(?i)password|secret|token|hr_(user|node)_", IMAGES.partition("\nFROM")[2]
    )


def words(text: str) -> set[str]:
    """The words of lines that a backslash joins, without options."""
    found = text.replace("\\\n", " ").split()
    return {word for word in found if not word.startswith("-")}


def installed(stage: str) -> set[str]:
    """The Debian packages of a stage of the images."""
    text = re.search(rf" AS {stage}\n(.*?)(?=\nFROM |\Z)", IMAGES, re.S)
    assert text is not None
    return words("".join(re.findall(r"apt-get install (.*?)&&", text.group(1), re.S)))


def copied() -> set[str]:
    """What the images take from the project, in its paths."""
    orders = re.findall(r"^COPY (?!--from)(.*) \S+$", IMAGES, re.M)
    return {source for order in orders for source in order.split()}


def test_the_images_take_what_is_there_and_what_the_build_is_given() -> None:
    there = {str(each) for path in files() for each in (path, *path.parents)}
    assert copied() <= there
    given = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert {source.partition("/")[0] for source in copied()} == set(given)


def test_the_images_take_every_package_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    include = project["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.rstrip("*") for name in include} <= copied()


def test_the_images_and_the_machines_have_the_libraries_that_the_modules_are_linked_to() -> None:
    modules = [*(ROOT / "native").glob("_engine.*.so"), *(ROOT / "headrace").glob("_codec.*.so")]
    assert len(modules) == 2
    told = subprocess.run(["ldd", *modules], capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r"\b(lib\w+)\.so\.(\d+) =>", told)) - {("libc", "6")}
    # Debian names a package after the library; the dash parts two numbers.
    packages = {f"{name}{'-' if name[-1].isdigit() else ''}{number}" for name, number in found}
    packages = {name.replace("libcrypto", "libssl") for name in packages}
    assert {"libisal2", "liblz4-1", "libssl3"} <= packages <= installed("ground")
    document = (ROOT / "docs" / "operating" / "deploying.md").read_text()
    lines = re.findall(r"# apt-get install (.*)", document)
    assert packages - {"libssl3"} <= words(" ".join(lines)), "libssl3 comes with Python"


def test_the_images_are_built_with_what_a_checkout_is_built_with() -> None:
    packages = re.search(r'^SETUP_PACKAGES="(.*?)"', SETUP, re.M | re.S)
    assert packages is not None
    here = words(packages.group(1))
    assert {name for name in here if name.endswith("-dev")} <= installed("wheel") <= here
    assert {name for name in here if name.startswith("openjdk")} <= installed("reports")
    server = re.fullmatch(r"postgres:(\d+)-bookworm", COMPOSE["services"]["postgres"]["image"])
    assert server is not None
    assert f"postgresql-{server.group(1)}" in here
    node = re.search(r"^ARG NODE=(\d+)-", IMAGES, re.M)
    assert node is not None
    locked = (ROOT / "requirements" / "dev.txt").read_text()
    assert f"\nnodejs-wheel=={node.group(1)}." in locked


def test_a_volume_is_made_from_a_folder_that_belongs_to_the_account() -> None:
    made = re.search(r"install --directory --owner=headrace (.*?)\n(?!\s)", IMAGES, re.S)
    assert made is not None
    for name, service in COMPOSE["services"].items():
        targets = {volume.split(":")[1] for volume in service["volumes"]}
        assert "build" not in service or targets <= words(made.group(1)), name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_and_parses_as_posix_shell(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)
