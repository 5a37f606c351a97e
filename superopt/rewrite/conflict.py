"""Why a rule cannot be used at a place."""


class Conflict(Exception):
    """Something does not fit; the message says what was expected and what was found."""
