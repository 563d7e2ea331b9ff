"""`headrace up --set`: a setting is checked before anything is started."""

import pytest

from api.embedded.overrides import overrides_of
from headrace.errors import ConfigurationInvalid


def test_a_setting_becomes_a_variable_of_the_environment() -> None:
    assert overrides_of(["node.shards=2", "Reports.spark_master=local[2]"]) == {
        "HEADRACE_NODE__SHARDS": "2",
        "HEADRACE_REPORTS__SPARK_MASTER": "local[2]",
    }


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("node.shrads=2", "Did you mean node.shards?"),
        ("nod.log_level=debug", "Did you mean node.log_level?"),
        ("colour.paint=red", "List them with: headrace up --help"),
        ("api.port=1", "Use --port."),
        ("node.cluster_id=cl_1", "The first start of a folder sets it."),
        ("node.shards", "Example: node.shards=2"),
        ("=2", "Example: node.shards=2"),
    ],
)
def test_another_setting_is_refused_with_the_nearest(setting: str, hint: str) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        overrides_of([setting])
    assert refused.value.hint == hint
