"""One Spark session for the whole folder, and no profile of whoever runs the tests."""

from tests.support.processes.spark import no_profile, spark

__all__ = ["no_profile", "spark"]
