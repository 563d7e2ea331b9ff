"""One Spark session for the whole folder, without the profile of the developer."""

from tests.support.processes.spark import no_profile, spark

__all__ = ["no_profile", "spark"]
