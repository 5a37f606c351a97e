# pyright: basic
"""A real browser, driven as a person would: what is on the page, by what it says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE = 120.0

FLAWS = Path(__file__).with_name("flaws.js").read_text()
"""Lists what somebody with a screen reader, or with tired eyes, would stumble over."""


class Page:
    """The page in a browser window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get("about:blank")  # another fragment of the same page alone would not load it again
        self.driver.get(url)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """When it is there and can be seen."""
        self.until(lambda: any(e.is_displayed() for e in self.all(selector)), selector)
        return next(e for e in self.all(selector) if e.is_displayed())

    def text(self, selector: str = "main") -> str:
        return self.one(selector).text

    def says(self, words: str, selector: str = "main") -> None:
        self.until(lambda: words in self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector),
                   lambda: f"{words!r} in {self.text(selector)[:1000]!r}")  # fmt: skip

    def until(self, true: Callable[[], Any], what: str | Callable[[], str]) -> None:
        from selenium.common.exceptions import StaleElementReferenceException

        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if true():
                    return
            except StaleElementReferenceException:
                pass
            time.sleep(0.05)
        raise AssertionError(f"did not come: {what if isinstance(what, str) else what()}")

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, matches: str) -> None:
        """Tab on until the focus is on an element that matches the selector."""
        for _ in range(120):
            self.press("\ue004")
            if self.run("return document.activeElement.matches(arguments[0])", matches):
                return
        raise AssertionError(f"the keyboard does not lead to {matches}")

    def flaws(self) -> list[str]:
        return self.run(FLAWS)

    def complaints(self) -> list[str]:
        """What the browser's console has to say, but for answers that the page shows itself."""
        told = [entry["message"] for entry in self.driver.get_log("browser")]
        return [message for message in told if "Failed to load resource" not in message]


@contextmanager
def browser(folder: Path) -> Generator[Any]:
    """Without a window, with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en",
                 f"--user-data-dir={folder}"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        yield driver
    finally:
        driver.quit()
