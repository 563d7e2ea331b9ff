"""Logs: one JSON object a line, and never a secret, wherever it stands."""

import errno
import io
import json
import os
import sys

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from api.auth.tokens import new_token
from api.db.database import Database
from api.telemetry import configure_logs, redact


def test_a_token_loses_its_secret_and_keeps_its_public_id() -> None:
    token = new_token("user")
    told = redact(f"before {token.text} after")
    assert token.secret not in told
    assert token.public_id in told
    assert told.startswith("before ")
    assert told.endswith(" after")


def test_a_token_in_a_traceback_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning")
    token = new_token("node")
    try:
        raise ValueError(f"refused {token.text}")
    except ValueError as error:
        structlog.get_logger("canary").error("failed", token=token.text, exc_info=error)
    printed = capsys.readouterr().err
    # Back to the stream that outlives this test.
    with capsys.disabled():
        configure_logs("warning")
    assert token.secret not in printed
    assert json.loads(printed)["event"] == "failed"


class FullStream(io.StringIO):
    """A file on a disk without room."""

    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_line_that_cannot_be_written_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", FullStream())
        configure_logs("warning")
        structlog.get_logger("canary").error("lost")
    configure_logs("warning")


@pytest.mark.parametrize("engine", ["reader", "writer"])
def test_an_error_of_the_database_does_not_say_what_users_wrote(engine: str) -> None:
    database = Database("sqlite://")
    with (
        getattr(database, engine).connect() as connection,
        pytest.raises(OperationalError) as failed,
    ):
        connection.execute(text("SELECT :words FROM nowhere"), {"words": "what users wrote"})
    database.close()
    assert "nowhere" in str(failed.value)
    assert "what users wrote" not in str(failed.value)
