"""`-o template=TEXT`: an own form of every object, refused where it is none."""

import json

import pytest

from headrace.cli.template import Template
from headrace.errors import Invalid
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi

ROW = {
    "name": "orders",
    "spec": {"partitions": 3, "protected": True},
    "status": {"partitions": [{"primary": "nd_1"}, {"primary": "nd_2"}], "reason": None},
}


def shown(text: str, *rows: dict[str, object]) -> str:
    return "".join(Template(text).lines(rows or (ROW,)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{name}", "orders\n"),
        ("{name}: {spec.partitions}", "orders: 3\n"),
        ("{status.partitions.1.primary}", "nd_2\n"),
        ("{status.partitions.7.primary}", "\n"),
        ("{status.reason}|{status.reason.deeper}", "|\n"),
        ("{spec.protected} {spec}", 'true {"partitions":3,"protected":true}\n'),
        (r"{name}\t{name}\n\\", "orders\torders\n\\\n"),
        (r"\d é", "\\d é\n"),
        ("{{name}}", "{name}\n"),
        ("{{{name}}}", "{orders}\n"),
        ("no field", "no field\n"),
        ("[{spec.codec?}]", "[]\n"),
    ],
)
def test_a_template_says_what_its_fields_hold(text: str, line: str) -> None:
    assert shown(text) == line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "The template is empty"),
        ("{name", "an unmatched {"),
        ("name}", "an unmatched }"),
        ("{}", "{} in the template is not a valid field"),
        ("{name!r}", "{name!r} in the template is not a valid field"),
        ("{name:>20}", "is not a valid field"),
        ("{name.}", "is not a valid field"),
        ("{0}", "is not a valid field"),
        ("{__class__.__init__()}", "is not a valid field"),
        ("{{{name}}", "an unmatched }"),
    ],
)
def test_a_text_that_is_no_template_is_refused_and_told_why(text: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        Template(text)
    assert why in refused.value.message
    assert refused.value.hint


def test_a_field_that_is_nowhere_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(Invalid, match=r"no field \{spec.partitons\}") as refused:
        shown("{spec.partitons}")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(
        "Did you mean spec.partitions? Available fields: partitions, protected."
    )


def test_a_field_inside_a_text_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        shown("{name.first}")
    assert refused.value.hint == "name has no fields. Use -o json to see all fields."


def test_attributes_of_python_are_no_fields() -> None:
    with pytest.raises(Invalid):
        shown("{name.__class__}")


def test_a_field_that_only_some_objects_have_is_empty_in_the_others() -> None:
    assert shown("<{a}>", {"a": 1}, {"b": 2}) == "<1>\n<>\n"


def test_an_empty_list_prints_nothing_whatever_the_template_names() -> None:
    assert list(Template("{nothing}").lines(())) == []


@pytest.fixture
def known(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "known", "--partitions", "2")
    headrace("topic", "create", "other", "--partitions", "1")


@pytest.mark.usefixtures("known")
def test_objects_and_lists_take_a_template(headrace: Run) -> None:
    one = headrace("topic", "describe", "known", "-o", "template={name} {spec.partitions}")
    assert (one.code, one.out) == (0, "known 2\n")
    many = headrace("-o", r"template={name}\t{spec.partitions}", "topic", "list")
    assert (many.code, many.out) == (0, "known\t2\nother\t1\n")


@pytest.mark.usefixtures("known")
def test_a_wrong_field_ends_with_8_and_prints_no_data(headrace: Run) -> None:
    done = headrace("topic", "list", "-o", "template={nmae}")
    assert (done.code, done.out) == (8, "")
    assert "Did you mean name?" in done.err


def test_a_bad_template_is_a_usage_error_before_anything_is_asked(
    headrace: Run, api: ScriptedApi
) -> None:
    before = len(api.seen)
    done = headrace("topic", "create", "never", "-o", "template={name")
    assert (done.code, done.out) == (2, "")
    assert "an unmatched {" in done.err
    assert "Write a field as {name}" in done.err
    assert len(api.seen) == before


def test_records_take_a_template_and_what_is_no_text_stands_as_base64(headrace: Run) -> None:
    headrace("produce", "single", "-k", "k", stdin=b"first\n")
    headrace("produce", "single", stdin=b"\xff\n")
    read = ("consume", "single", "--from", "start", "-e")
    done = headrace(*read, "-o", "template={partition}@{offset} {key}={value}")
    assert done.out.splitlines() == ["0@0 k=first", "0@1 =/w=="]
    envelope = json.loads(headrace(*read, "-n", "1", "-o", "jsonl").out)
    fields = "template=" + " ".join(f"{{{name}}}" for name in envelope)
    assert headrace(*read, "-n", "1", "-o", fields).code == 0


def test_a_wrong_field_of_a_record_names_those_there_are(headrace: Run) -> None:
    headrace("produce", "single", stdin=b"first\n")
    done = headrace("consume", "single", "--from", "start", "-e", "-o", "template={vlaue}")
    assert done.code == 8
    assert "topic, partition, offset, ts, key, value, headers" in done.err


@pytest.mark.parametrize(
    "verb",
    [
        ("topic", "create", "new", "--partitions", "1"),
        ("topic", "alter", "known", "--partitions", "3"),
        ("topic", "delete", "known", "--yes"),
        ("stream", "create", "new"),
        ("project", "create", "new"),
        ("org", "create", "new"),
        ("key", "create", "new"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("known")
def test_what_was_changed_is_printed_though_the_template_names_what_is_not_there(
    headrace: Run, verb: tuple[str, ...]
) -> None:
    done = headrace(*verb, "-o", "template={nmae}")
    assert done.code == 8
    assert json.loads(done.out)["name"] == verb[2]
    assert "The change was applied and is printed as JSON. Did you mean name?" in done.err


def test_the_secret_of_a_key_is_never_lost(headrace: Run) -> None:
    wrong = headrace("key", "create", "one", "-o", "template={sceret}")
    assert json.loads(wrong.out)["secret"].startswith("hr_")
    for form in ("name", "template={id}"):
        done = headrace("key", "create", form[:4], "-o", form)
        assert done.code == 0
        assert "The secret is shown only once: hr_" in done.err
    done = headrace("key", "create", "four", "-o", "template={secret}")
    assert done.out.strip() not in done.err
