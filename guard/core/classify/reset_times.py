"""Read from the text of a message when a limit ends."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

_FARTHEST = timedelta(days=8)
_GRACE = timedelta(minutes=2)
"""A time of day that has just passed is not tomorrow's: messages omit seconds, and reading takes a moment."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = "|".join(_MONTHS)
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}

_LEAD = r"\b(?:resets?|again|retry|until|available|back)(?: (?:at|on|after|again|from))*[:\s]+"
_DATE = (
    r"(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+(?:at\s+)?)?"
    rf"(?:(?P<month>{_MONTH})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<year>20\d\d))?)?"
)
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?(?:\s*(?P<half>[ap])\.?m\b\.?)?"
_ZONE = r"(?:\s*\((?P<zone>[^()\s]+)\)|\s*(?P<bare>\bUTC|\bGMT|(?<=\d)Z|\b[A-Z][a-z]+/[A-Za-z_/]{2,40})\b)?"
_UNREAD = re.compile(
    r"\s*[+-]\d|\s*\b(?:(?-i:[A-Z]{1,4}T|MSK)|[ecmp][sd]?t|pacific|eastern|central|mountain)\b"
    r"|,?\s+(?:on\s+)?(?:tomorrow|next|the|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?)\b"
    rf"|,?\s+(?:on\s+)?(?:(?:{_MONTH})[a-z]*\.?\s+\d|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{_MONTH}))",
    re.IGNORECASE,
)
"""Text that changes the meaning of the time before it: a zone, an offset, a day."""
_MOMENT = re.compile(rf"{_LEAD}{_DATE}(?:,?\s*(?:at\s+)?{_CLOCK})?{_ZONE}", re.IGNORECASE)
_ISO = re.compile(
    r"(?:reset|again|retry|until)\D{0,40}(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.I,
)
_EPOCH = re.compile(r"\|\s?(\d{10})\b")
_IN = re.compile(
    r"(?:\b(?:again|retry|resets?|reset|available|wait)(?: (?:in|after|for))|retry.?(?:after|delay)\W{1,6})\s*"
    r"((?:(?:about|approximately|~)\s*)?(?:(?:\d+(?:\.\d+)?|an?)\s*[a-z]+[\s,]*(?:and\s+)?){1,5}|\d+\b)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:(\d+(?:\.\d+)?)\s*|\ban?\s+)(d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])",
    re.IGNORECASE,
)
_ZONE_NAME = re.compile(r"[A-Za-z]{1,14}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


# The result is never earlier than the time that was meant. A time of day is its next occurrence, a day without a time is that
# day's end, and of several times the latest counts. A time without a zone is read in the zone of `now`: programs print local
# time, so the caller gives `now` in the zone of this machine.
#
# An unknown zone, and an offset or a day after the time, give no time at all: a loop that backs off by itself does less harm
# than one that trusts a time that may be half a day wrong. For the same reason times more than eight days away are dropped:
# no limit lasts that long.
def reset_time(text: str, now: datetime) -> datetime | None:
    """Return the latest time, in UTC, that the message gives for the end of the limit."""
    text = " ".join(text[:4000].split())
    found = [*_epochs(text), *_iso_times(text, now), *_durations(text, now), *_moments(text, now)]
    return max((moment for moment in found if _is_likely(moment, now)), default=None)


def time_from_epoch(seconds: float, now: datetime) -> datetime | None:
    """Return the time of seconds or milliseconds since 1970; None if it is more than eight days away."""
    seconds = seconds / 1000 if seconds > 1e11 else seconds
    if not 0 < seconds < 1e11:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment if _is_likely(moment, now) else None


def time_after(seconds: float, now: datetime) -> datetime | None:
    if not 0 <= seconds <= _FARTHEST.total_seconds():
        return None
    return now.astimezone(UTC) + timedelta(seconds=seconds)


def duration_seconds(text: str) -> float | None:
    """Return the seconds of a duration such as `2 hours 5 minutes`, `12h34m16s` or `34.07s`."""
    amounts = list(_AMOUNT.finditer(text))
    if not amounts:
        return None
    return sum(float(amount[1] or 1) * _SECONDS[amount[2][0].lower()] for amount in amounts)


def _is_likely(moment: datetime, now: datetime) -> bool:
    return abs(moment - now) <= _FARTHEST


def _epochs(text: str) -> Iterator[datetime]:
    for found in _EPOCH.finditer(text):
        yield datetime.fromtimestamp(int(found[1]), UTC)


def _iso_times(text: str, now: datetime) -> Iterator[datetime]:
    for found in _ISO.finditer(text):
        if _UNREAD.match(text, found.end()):
            continue
        day, clock, zone = found[1], found[2], (found[3] or "").upper()
        try:
            moment = datetime.fromisoformat(
                f"{day}T{clock}{'+00:00' if zone in ('Z', 'UTC', 'GMT') else zone}"
            )
        except ValueError:
            continue
        yield (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).astimezone(UTC)


def _durations(text: str, now: datetime) -> Iterator[datetime]:
    for found in _IN.finditer(text):
        seconds = float(found[1]) if found[1].isdigit() else duration_seconds(found[1])
        moment = None if seconds is None else time_after(seconds, now)
        if moment:
            yield moment


def _moments(text: str, now: datetime) -> Iterator[datetime]:
    for found in _MOMENT.finditer(text):
        if _UNREAD.match(text, found.end()):
            continue
        named = found["zone"] or found["bare"]
        zone = _zone(named) if named else now.tzinfo
        moment = zone and _moment(found, now.astimezone(zone))
        if moment:
            yield max(moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _moment(found: re.Match[str], now: datetime) -> datetime | None:
    clock, recent = _clock(found), now - _GRACE
    try:
        day = _day(found, now)
        if clock is None:
            return day and day + timedelta(days=1)
        moment = (day or _midnight(now)).replace(hour=clock[0], minute=clock[1])
    except (ValueError, OverflowError):
        return None
    if found["month"] or moment > recent:
        return moment
    return moment + timedelta(days=7 if found["weekday"] else 1)


def _clock(found: re.Match[str]) -> tuple[int, int] | None:
    # A bare number is no time.
    if found["hour"] is None or (found["half"] is None and found["minute"] is None):
        return None
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    half = (found["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    return (hour % 12 + (12 if half == "p" else 0) if half else hour, minute)


def _day(found: re.Match[str], now: datetime) -> datetime | None:
    # The beginning of the named day; without a year, of the nearest such day.
    midnight = _midnight(now)
    if found["month"]:
        month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
        if found["year"]:
            return midnight.replace(year=int(found["year"]), month=month, day=day)
        named = midnight.replace(month=month, day=day)
        return named if named > midnight - _FARTHEST else named.replace(year=now.year + 1)
    if found["weekday"]:
        ahead = (_WEEKDAYS.index(found["weekday"].lower()) - midnight.weekday()) % 7
        return midnight + timedelta(days=ahead)
    return None


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _zone(name: str) -> tzinfo | None:
    # The name comes from outside and becomes part of a path.
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if not _ZONE_NAME.fullmatch(name) or name.startswith(("posix", "right")):
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return None
