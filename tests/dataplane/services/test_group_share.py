"""No organization takes every place for groups: they are kept for ever."""

import pytest

from dataplane.errors import Refused
from dataplane.metadata.rules import GROUPS_MAX
from dataplane.services.groups import check_share
from tests.support.builders.commands import Log, join, put_topic


def test_an_organization_begins_groups_up_to_its_share_and_leaves_the_rest() -> None:
    log = Log()
    log.do(put_topic("tp_1"))
    topic = max(each.number for each in log.machine.state.topics_by_number())
    for number in range(3):
        check_share(log.machine.state, "org_1", groups_max=4)
        log.do(join("m", 1, [topic], group=f"group-{number}"))
    with pytest.raises(Refused, match="3 of the 4 groups") as caught:
        check_share(log.machine.state, "org_1", groups_max=4)
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    check_share(log.machine.state, "org_2", groups_max=4)


def test_the_cluster_keeps_so_many_groups_and_those_it_has_go_on() -> None:
    log = Log()
    log.do(put_topic("tp_1"))
    topic = max(each.number for each in log.machine.state.topics_by_number())
    for number in range(GROUPS_MAX):
        assert log.do(join("m", 1, [topic], group=f"g{number}")).group.changed
    assert log.do(join("m", 1, [topic], group="one-more")).refused.code == "RESOURCE_EXHAUSTED"
    assert log.do(join("n", 2, [topic], group="g0")).group.changed
