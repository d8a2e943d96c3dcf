"""States that a repository can be left in, each built for real, by where the trouble is."""

from tests.rescue.states_content import CONTENT
from tests.rescue.states_heads import HEADS
from tests.rescue.states_index import INDEX
from tests.rescue.states_links import LINKS
from tests.rescue.states_places import PLACES
from tests.rescue.states_rebuilt import REBUILT
from tests.rescue.states_settings import SETTINGS
from tests.rescue.states_start import State, start

__all__ = ["STATES", "State", "start"]

STATES = {**CONTENT, **HEADS, **INDEX, **LINKS, **PLACES, **REBUILT, **SETTINGS}
assert len(STATES) == sum(map(len, (CONTENT, HEADS, INDEX, LINKS, PLACES, REBUILT, SETTINGS)))
