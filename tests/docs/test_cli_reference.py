"""docs/cli.md matches the command tree."""

from headrace.cli.main import _EXIT_CODES, root
from tests.support.cli_reference import EXITS, PAGE, leaves, page


def test_the_page_is_what_the_tree_says() -> None:
    assert PAGE.read_text() == page(), "run: make reference"


def test_every_command_and_every_option_has_a_help_text() -> None:
    for words, command in leaves(root):
        assert command.help, words
        options = [o for o in command.params if o.param_type_name == "option"]
        assert all(getattr(o, "help", None) for o in options), words


def test_every_exit_code_is_on_the_page() -> None:
    assert all(f"| {code} |" in EXITS for _, code in _EXIT_CODES)
