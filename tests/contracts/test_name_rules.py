"""What the control plane accepts as a name, the metadata machine accepts too: else a topic that was
wished for never comes."""

import re

import pytest

from api.http.resource import NAME_PATTERN, TOPIC_NAME_PATTERN
from dataplane.errors import Refused
from dataplane.metadata import rules
from tests.support.builders.commands import put_topic

NAME_LENGTH_MAX = 63
TOPIC_NAME_LENGTH_MAX = 249


def _check(*, topic: str = "clicks", stream: str = "default", project: str = "default") -> None:
    desired = put_topic(topic=topic).control.request.put_topic
    desired.stream, desired.project = stream, project
    rules.check_topic(desired)


def test_both_planes_have_one_rule_for_the_name_of_a_topic() -> None:
    assert f"^{rules.TOPIC_NAME.pattern}$" == TOPIC_NAME_PATTERN


def test_the_longest_names_of_the_control_plane_pass_the_machine() -> None:
    topic = "T" + "._-9" * 62
    name = "n" + "-9" * 31
    assert (len(topic), len(name)) == (TOPIC_NAME_LENGTH_MAX, NAME_LENGTH_MAX)
    assert re.match(TOPIC_NAME_PATTERN, topic)
    assert re.match(NAME_PATTERN, name)
    _check(topic=topic, stream=name, project=name)
    assert not re.match(TOPIC_NAME_PATTERN, topic + "a")
    assert not re.match(NAME_PATTERN, name + "a")
    with pytest.raises(Refused, match="1 to 249"):
        _check(topic=topic + "a")
