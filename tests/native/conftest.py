"""What the tests of the C core share."""

from tests.support.clients.grpc_client import channel, host

__all__ = ["channel", "host"]
