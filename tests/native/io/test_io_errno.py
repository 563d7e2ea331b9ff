"""What the system's error numbers mean: each asks for other hands, so each has its own name."""

import errno

import pytest

from native._engine_sim import lib
from tests.support.builders.storage import name


@pytest.mark.parametrize(
    ("number", "meant"),
    [
        (errno.ENOSPC, "STORAGE_FULL"),
        (errno.EDQUOT, "STORAGE_FULL"),
        (errno.ENOENT, "FILE_NOT_FOUND"),
        (errno.EEXIST, "FILE_EXISTS"),
        (errno.EROFS, "STORAGE_READ_ONLY"),
        (errno.EACCES, "ACCESS_REFUSED"),
        (errno.EPERM, "ACCESS_REFUSED"),
        (errno.EMFILE, "DESCRIPTORS_USED_UP"),
        (errno.ENFILE, "DESCRIPTORS_USED_UP"),
        (errno.EADDRINUSE, "ADDRESS_IN_USE"),
        (errno.EADDRNOTAVAIL, "ADDRESS_UNKNOWN"),
        (errno.EIO, "IO_FAILED"),
        (errno.EBADF, "IO_FAILED"),
    ],
)
def test_an_error_number_has_a_name(number: int, meant: str) -> None:
    assert name(lib.status_of_errno(number)) == meant
