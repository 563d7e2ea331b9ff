"""The lists of settings that the command line prints name what the services accept."""

import re

import pytest
from pydantic import ValidationError

from api.embedded import overrides
from api.settings import Settings
from api.topics.schemas import TopicSpec, effective_members
from api.topics.spec import DEFAULTS
from dataplane.settings import NodeSettings
from headrace.cli.topic_spec import SETTINGS, Setting

RANGED = [(each, re.search(r"(\d+) to (\d+)", each.values)) for each in SETTINGS]


def accepts(setting: Setting, text: str) -> bool:
    try:
        TopicSpec.model_validate({setting.name: setting.parse(text)})
    except ValidationError:
        return False
    return True


def _words(value: object) -> str:
    return str(value).lower()


def test_topic_settings_are_the_members_of_a_spec_with_their_defaults() -> None:
    assert [each.name for each in SETTINGS] == list(TopicSpec.model_fields)
    listed = {each.name: each.default for each in SETTINGS}
    assert listed == {name: _words(value) for name, value in effective_members(DEFAULTS).items()}
    assert all(accepts(each, each.default) for each in SETTINGS)


@pytest.mark.parametrize(
    ("setting", "least", "most"),
    [(each, int(found[1]), int(found[2])) for each, found in RANGED if found],
)
def test_a_range_is_the_range_of_the_api(setting: Setting, least: int, most: int) -> None:
    assert accepts(setting, str(least))
    assert accepts(setting, str(most))
    assert not accepts(setting, str(least - 1))
    assert not accepts(setting, str(most + 1))


def test_service_settings_are_those_of_the_node_and_of_the_api() -> None:
    accepted = {
        f"{section}.{key}"
        for model in (NodeSettings, Settings)
        for section, field in model.model_fields.items()
        for key in field.annotation.model_fields  # type: ignore[union-attr]
    }
    listed = {each.name for each in overrides.SETTINGS}
    assert listed | overrides.PORTS | overrides.IDENTITY == accepted
    assert listed.isdisjoint(overrides.PORTS | overrides.IDENTITY)
