"""Tell the viewers of a workspace that its log has grown, by server-sent events."""

import asyncio
from collections.abc import AsyncIterator

from guard.dashboard.workspace import ShownWorkspace
from guard.errors import GuardError
from guard.system.file_events import News

_LOOK_SECONDS = 1.0
_QUIET_SECONDS = 15.0
_PAUSE_SECONDS = 0.2
"""Between two messages to one viewer: a burst of events is one piece of news."""
_BROKEN = -1


class LogWatch:
    """Waits for the bell of one log, once for all its viewers, and only while there are any."""

    def __init__(self, shown: ShownWorkspace) -> None:
        self._shown = shown
        self._viewers: set[asyncio.Event] = set()
        self._watch: asyncio.Task[None] | None = None

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the number of the newest record: at once, and after each change."""
        mine, told = asyncio.Event(), None
        self._viewers.add(mine)
        # What happens after this is news, so nothing between the first look and the watch is missed.
        self._begin()
        try:
            yield b"retry: 1000\n\n"
            while True:
                seq = await asyncio.to_thread(self._seq)
                yield b": quiet\n\n" if seq == told else f"event: news\ndata: {seq}\n\n".encode()
                told = seq
                try:
                    await asyncio.wait_for(mine.wait(), _QUIET_SECONDS)
                    await asyncio.sleep(_PAUSE_SECONDS)
                except TimeoutError:
                    pass
                mine.clear()
        finally:
            self._viewers.discard(mine)

    def _seq(self) -> int:
        try:
            return self._shown.seq()
        except (GuardError, OSError):
            return _BROKEN

    def _begin(self) -> None:
        if self._watch is None or self._watch.done():
            news = News([], log=self._shown.guard.store.bell())
            self._watch = asyncio.create_task(self._keep_watch(news))

    async def _keep_watch(self, news: News) -> None:
        while self._viewers:
            if await asyncio.to_thread(news.wait, _LOOK_SECONDS):
                for viewer in self._viewers:
                    viewer.set()
        self._watch = None
        news.close()
