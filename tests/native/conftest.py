"""What the tests of the C core share."""

from tests.support.grpc_client import channel, host

__all__ = ["channel", "host"]
