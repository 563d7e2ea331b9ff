"""What can go wrong in a report run, for people and for the worker that started it.

    ReportError                  code, what happened, what to do next, exit status
    +-- ArgumentError      2     the command line or an option of the data source
    +-- SourceError        3     the cluster could not be read; repeating the run may help
    +-- ControlError       3     the REST API could not be reached or refused
    +-- SparkError         3     Spark was killed while it computed
    +-- InputError         4     what was read cannot be understood or does not belong together
    +-- PublishError       5     the files could not be written, or do not agree with each other

Owns the exit statuses. Refuses prose without a next step: every error carries a hint.
"""

import errno
import os
import re

EXIT_PUBLISHED = 0
EXIT_UNEXPECTED = 1
SEPARATOR = " -> "


class ReportError(Exception):
    """A failure with a stable code; `str()` is one line for people and holds no secret."""

    exit_status = EXIT_UNEXPECTED

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}{SEPARATOR}{self.hint}"


class ArgumentError(ReportError):
    """An option or argument that cannot work."""

    exit_status = 2


class SourceError(ReportError):
    """The cluster could not be read to the end."""

    exit_status = 3


class ControlError(ReportError):
    """The control plane could not be asked, or did not take the result.

    Repeatable: it may do so in a moment.
    """

    exit_status = 3

    def __init__(self, code: str, message: str, hint: str, *, repeatable: bool = False) -> None:
        super().__init__(code, message, hint)
        self.repeatable = repeatable


class SparkError(ReportError):
    """Spark's JVM ended before it was asked to."""

    exit_status = 3


class InputError(ReportError):
    """Inputs that must not be billed from: unknown versions, missing prices, damaged archives."""

    exit_status = 4


class PublishError(ReportError):
    """A report that must not appear."""

    exit_status = 5


_TREE = {
    cls.__name__: cls
    for cls in (ArgumentError, SourceError, ControlError, InputError, PublishError)
}
_RAISED = re.compile(r"reports\.errors\.(\w+): ([A-Z][A-Z0-9_]+): (.+)")


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_FOLDER = (*_FULL, errno.EACCES, errno.EPERM, errno.EIO)


def folder_trouble(failure: Exception) -> PublishError | None:
    """What an operator can mend: a disk that is full or broken, a folder that is not ours to write.
    Spark's own files say it in text only."""
    full = (os.strerror(one) for one in _FULL)
    found = next((words for words in full if words in str(failure)), None)
    if isinstance(failure, OSError) and failure.errno in _FOLDER:
        found = f"{failure.filename}: {failure.strerror}" if failure.filename else failure.strerror
    if found is None:
        return None
    return PublishError(
        "FOLDER_NOT_WRITABLE",
        f"The files of the report cannot be written: {found}.",
        "Look at the space and the owner of the reports' folder, then run it again.",
    )


def found_in(text: str) -> ReportError | None:
    """The error of ours inside the text of one that Spark raised.

    A worker's exception crosses the JVM as text only.
    """
    found = _RAISED.search(text)
    if found is None or found[1] not in _TREE:
        return None
    message, _, hint = found[3].strip().partition(SEPARATOR)
    return _TREE[found[1]](found[2], message, hint)
