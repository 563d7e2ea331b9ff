"""What is deployed fits what is there: modules, verbs, options, settings, ports; scripts parse."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from api.settings import ApiSettings, Settings
from dataplane.settings import MeteringSection, NodeSection
from tests.support.source import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SCRIPTS = sorted([*DEPLOY.glob("*.sh"), ROOT / ".ci" / "run"])
IMAGES = (DEPLOY / "images" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCUMENTS = [
    *(path for path in DEPLOY.rglob("*") if path.is_file() and "__pycache__" not in path.parts),
    ROOT / "docs" / "operating" / "deploying.md",
]
# What Makefile, compose and the client read themselves.
OTHERS = {"HEADRACE_POSTGRES_PASSWORD", "HEADRACE_ADVERTISED_HOST", "HEADRACE_MODULES"}
OTHERS |= {
    "HEADRACE_ENGINE_SIM",
    "HEADRACE_PROFILE",
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


def helped(module: str, arguments: str) -> None:
    """The module knows the verb, if there is one, and every option behind it."""
    words = arguments.split()
    verbs = [word for word in words[:1] if not word.startswith("-")]
    told = subprocess.run(
        [sys.executable, "-m", module, *verbs, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    options = re.findall(r"--[\w-]+", arguments)
    assert all(option in told.stdout for option in options), (module, arguments)


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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_and_parses_as_posix_shell(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)
