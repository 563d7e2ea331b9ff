"""`python -m api.embedded.demo`: flights into the topic `flights` at a steady rate, their weather
into `weather`, and two groups that read the flights, so that a first-time user sees
data.

    departures   keeps up
    delays       takes what came every few seconds, as a nightly job would take a day

It is a client like any other, with the owner's key, and goes through the year again and again.
Ends on SIGTERM. A service that is away is waited for.
"""

import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from api.embedded.flights import flights, weather
from api.embedded.shutdown import Stop
from headrace.client import Client
from headrace.errors import HeadraceError
from headrace.profiles import read_profiles
from headrace.settings import Settings

TOPIC: Final = "flights"
PARTITIONS: Final = {TOPIC: 4, "weather": 1}
RECORDS_PER_SECOND: Final = 300
WEATHER_PER_SECOND: Final = 60
TICK_SECONDS: Final = 0.1
BATCH_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 5.0

log = logging.getLogger("headrace.demo")


class Replay:
    """Two producers and two groups, each in its own thread, until stopped."""

    def __init__(self, client: Client, stop: Stop) -> None:
        self._client = client
        self._stop = stop

    def run(self) -> None:
        """Until stopped."""
        for name, partitions in PARTITIONS.items():
            self._make_topic(name, partitions)
        threads = [
            threading.Thread(target=self._repeated, args=(work,), name=name)
            for name, work in (
                ("flights", lambda: self._produce(TOPIC, flights, RECORDS_PER_SECOND)),
                ("weather", lambda: self._produce("weather", weather, WEATHER_PER_SECOND)),
                ("departures", lambda: self._read("departures", 0.0)),
                ("delays", lambda: self._read("delays", BATCH_SECONDS)),
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _make_topic(self, name: str, partitions: int) -> None:
        while not self._stop.is_set():
            try:
                self._client.admin.create_topic(name, partitions=partitions, if_not_exists=True)
            except HeadraceError as error:
                log.warning("the topic cannot be made yet: %s", error)
                self._stop.wait(RETRY_SECONDS)
            else:
                return

    def _repeated(self, work: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                work()
            except HeadraceError as error:
                log.warning("%s begins anew: %s", threading.current_thread().name, error)
                self._stop.wait(RETRY_SECONDS)

    def _produce(
        self, name: str, source: Callable[[], Iterator[tuple[bytes, bytes]]], per_second: int
    ) -> None:
        topic = self._client.topic(name)
        records = itertools.chain.from_iterable(source() for _ in itertools.count())
        begun, sent = time.monotonic(), 0
        while not self._stop.wait(TICK_SECONDS):
            due = int((time.monotonic() - begun) * per_second) - sent
            # After a pause the backlog is dropped: the rate stays constant.
            if due > per_second:
                begun, sent, due = time.monotonic(), 0, 0
            for key, value in itertools.islice(records, due):
                topic.send_nowait(value, key=key)
            sent += due

    def _read(self, group: str, every_seconds: float) -> None:
        consumer = self._client.consume(
            TOPIC,
            group=group,
            start="latest",
            member=f"{group}-1",
            ack="manual",
            on_expired="skip",
        )
        with consumer:
            while not self._stop.wait(every_seconds):
                until = time.monotonic() + POLL_SECONDS
                while consumer.poll(POLL_SECONDS) is not None and time.monotonic() < until:
                    pass
                consumer.commit()


def main() -> int:
    """What the supervisor starts: PROFILE_FILE API_URL BOOTSTRAP."""
    profile, api_url, bootstrap = sys.argv[1:]
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
    stop = Stop()
    stop.on_signals()
    key = str(read_profiles(Path(profile)).members["default"]["key"])
    client = Client(Settings(bootstrap=(bootstrap,), api_url=api_url, key=key))
    log.info("replaying flights at %d records/s", RECORDS_PER_SECOND)
    Replay(client, stop).run()
    client.close(timeout="5s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
