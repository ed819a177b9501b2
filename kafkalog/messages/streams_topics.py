"""Names of Kafka Streams' internal topics: which application they are of, and which store.

    APPLICATION-STORE-changelog    what is in a state store
    APPLICATION-NAME-repartition   records on their way to the task of another key

Both parts may have dashes, so where one ends is known only if there is no other place for the cut,
if the second is a name that Kafka Streams makes up (KSTREAM-AGGREGATE-STATE-STORE-0000000003), or
if somebody says the application's id.

Source: Kafka ProcessorStateManager.storeChangelogTopic, InternalTopologyBuilder.decorateTopic,
InternalStreamsBuilder.newStoreName.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

CHANGELOG, REPARTITION = "-changelog", "-repartition"
_MADE_UP = re.compile(r"(?P<application>.+?)-(?P<store>(KSTREAM|KTABLE)-[A-Z][A-Z-]*-\d{10}(-.+)?)")


def application_and_store(
    topic: str, suffix: str, applications: Iterable[str] = ()
) -> tuple[str | None, str | None]:
    """The two parts of a topic's name in front of its suffix; (None, None) where they are not
    certain. applications: ids that are known; the longest one that fits counts."""
    name = topic.removesuffix(suffix)
    fitting = [each for each in applications if name.startswith(f"{each}-")]
    if fitting:
        application = max(fitting, key=len)
        return application, name[len(application) + 1 :] or None
    made_up = _MADE_UP.fullmatch(name)
    if made_up is not None:
        return made_up["application"], made_up["store"]
    first, dash, second = name.partition("-")
    return (first, second) if dash and first and second and "-" not in second else (None, None)
