"""Texts of times in ISO 8601, as conditions in SQL."""

#: A text of whole microseconds, and its time zone.
_TEXT = (
    r'[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}'
    r'([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?)?'
)
_OFFSET = r'(Z|[+-][0-9]{2}(:?[0-9]{2})?)'


def is_text_of_time(name: str) -> str:
    """Returns the condition that a text is a time, with or without a zone."""
    return f"regexp_full_match({name}, '{_TEXT}{_OFFSET}?')"


def is_text_with_zone(name: str) -> str:
    """Returns the condition that a text is a time with a zone."""
    return f"regexp_full_match({name}, '{_TEXT}{_OFFSET}')"
