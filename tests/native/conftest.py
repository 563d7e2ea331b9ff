"""Model tests of the C core: no deadline per example, since machines that run them share CPUs."""

from hypothesis import settings

from tests.support.grpc_client import channel, host

__all__ = ["channel", "host"]

settings.register_profile("native", deadline=None)
settings.load_profile("native")
