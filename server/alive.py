"""Asks the API of this container whether it is alive: `python -m server.alive`, for HEALTHCHECK. 0 where it is."""

from __future__ import annotations

import sys
import urllib.request

from server.settings import read_settings

PATIENCE = 4.0


def main() -> int:
    """At the port of the settings, as the environment has them."""
    url = f"http://127.0.0.1:{read_settings().port}/livez"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return 0 if answer.status == 200 else 1
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
