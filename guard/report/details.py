"""Read what the first commits of the review queue say and change, for a page that shows them."""

from collections.abc import Iterator, Mapping

from guard.context.invocation import Invocation
from guard.core.report.details import CommitDetails, clean_details
from guard.core.report.document import NightReport, ReviewItem
from guard.core.rescue.redact import known_secrets
from guard.errors import GuardError
from guard.git.reader import RepositoryReader

MOST_COMMITS = 40
_MOST_FILES = 60
_MOST_LINES = 2000


def read_details(guard: Invocation, report: NightReport) -> Mapping[str, CommitDetails]:
    """Return the details of the commits that are to be looked at first, without secrets."""
    known = guard.repository_if_any
    oids = list(dict.fromkeys(_wanted(report)))[:MOST_COMMITS]
    if known is None or not oids:
        return {}
    # GitPython takes a tenth of a second to load.
    from guard.git.objects import open_objects

    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    git, secrets = RepositoryReader(known, guard.environ, limit), known_secrets(guard.environ)
    found: dict[str, CommitDetails] = {}
    try:
        with open_objects(git) as objects:
            for oid in oids:
                details = objects.read(oid)
                if details is not None:
                    found[oid] = clean_details(details, secrets)
    except (GuardError, OSError) as error:
        # The page is worth reading without them.
        guard.output.warn(f"the page is without the changes of the commits: {error}")
    return found


def _wanted(report: NightReport) -> Iterator[str]:
    for item in report.review:
        if _is_short(item):
            yield from item.oids


def _is_short(item: ReviewItem) -> bool:
    diff = item.diff
    if diff is None or diff.files > _MOST_FILES:
        return False
    return diff.insertions + diff.deletions <= _MOST_LINES
