"""The Dockerfile, held to the repository it is built from.

No image is built here. What can be known without building is: that every file it copies exists and passes
.dockerignore, that the package finds all it needs, and that every command, user and argument it names is real.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from server import alive
from server.settings import read_settings
from superopt.cli.parser import build_parser
from superopt.version import __version__
from tests.server.shop import Shop

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
# Programs the base image has: Debian's own and Python's.
PROGRAMS = {"install", "pip", "useradd"}


class BadDockerfile(Exception):
    """`line: what is wrong`"""


@dataclass(frozen=True)
class Instruction:
    line: int
    keyword: str
    value: str

    @property
    def array(self) -> list[str]:
        """The exec form, `["program", "argument"]`. The shell form would put a shell between docker and us."""
        try:
            found = json.loads(self.value)
        except json.JSONDecodeError as error:
            raise BadDockerfile(f"{self.line}: {self.keyword} is not a JSON array: {error}") from None
        if not isinstance(found, list) or not found or not all(isinstance(x, str) for x in found):  # pyright: ignore[reportUnknownVariableType]
            raise BadDockerfile(f"{self.line}: {self.keyword} must be a JSON array of strings")
        return found  # pyright: ignore[reportUnknownVariableType]


def parse(text: str) -> list[Instruction]:
    """Instructions with their continuation lines joined; whatever is not plainly one is an error."""
    found: list[Instruction] = []
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not line.strip() and not pending):
            continue
        if not line.strip():
            raise BadDockerfile(f"{number}: empty line inside a continued instruction")
        start = start if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        found.append(instruction(start, pending))
        pending = ""
    if pending:
        raise BadDockerfile(f"{start}: the last line promises a continuation")
    keywords = [i.keyword for i in found]
    if "FROM" not in keywords:
        raise BadDockerfile("1: no FROM")
    early = set(keywords[: keywords.index("FROM")]) - {"ARG"}
    if early:
        raise BadDockerfile(f"1: {', '.join(sorted(early))} before FROM")
    return found


def instruction(line: int, text: str) -> Instruction:
    keyword, _, value = text.partition(" ")
    if keyword not in INSTRUCTIONS:
        raise BadDockerfile(f"{line}: unknown instruction {keyword!r}")
    if not value.strip():
        raise BadDockerfile(f"{line}: {keyword} without a value")
    made = Instruction(line, keyword, value.strip())
    if keyword in ("CMD", "ENTRYPOINT"):
        _ = made.array
    if keyword in ("ARG", "ENV") and not re.match(r"[A-Z_]+=", made.value):
        raise BadDockerfile(f"{line}: {keyword} needs NAME=value")
    if keyword == "COPY" and len(made.value.split()) < 2:
        raise BadDockerfile(f"{line}: COPY needs a source and a destination")
    if keyword == "RUN":
        try:
            shlex.split(made.value)
        except ValueError as error:
            raise BadDockerfile(f"{line}: RUN: {error}") from None
    return made


TEXT = (ROOT / "Dockerfile").read_text()
DOCKERFILE = parse(TEXT)


def values(keyword: str) -> list[str]:
    return [i.value for i in DOCKERFILE if i.keyword == keyword]


def stages() -> dict[str, list[Instruction]]:
    """The instructions of each stage by its name, those of the stage that it is built on first."""
    found: dict[str, list[Instruction]] = {}
    name = ""
    for entry in DOCKERFILE:
        if entry.keyword == "FROM":
            base, _, name = entry.value.partition(" AS ")
            found[name] = list(found.get(base, ()))
        elif name:
            found[name].append(entry)
    return found


def last(stage: str, keyword: str) -> Instruction:
    """The one that counts."""
    return [i for i in stages()[stage] if i.keyword == keyword][-1]


IMAGES = pytest.mark.parametrize("stage", ["service", "command"])


def arguments() -> dict[str, str]:
    pairs = (v.partition("=") for v in values("ARG"))
    return {name: value.strip('"') for name, _, value in pairs}


def substituted(text: str) -> str:
    """With every ${NAME} replaced by the argument's default."""
    return re.sub(r"\$\{(\w+)\}", lambda match: arguments()[match[1]], text)


def copied() -> list[str]:
    return [source for value in values("COPY") for source in value.split()[:-1]]


def commands() -> list[list[str]]:
    """The programs of every RUN, one list of words for each."""
    return [shlex.split(part) for value in values("RUN") for part in substituted(value).split("&&")]


def superopt_runs(*words: str) -> subprocess.CompletedProcess[str]:
    module, _, function = PROJECT["project"]["scripts"]["superopt"].partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=ROOT)


def test_every_source_is_in_the_repository_and_let_through() -> None:
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert ignore[0] == "*", "nothing goes in unless it is named"
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    for source in copied():
        assert (ROOT / source).exists(), source
    assert allowed == {s.removeprefix("./") for s in copied()}


def test_folders_keep_their_names() -> None:
    for value in values("COPY"):
        *sources, target = value.split()
        for source in sources:
            assert target == "./" if (ROOT / source).is_file() else target == f"./{source}"


def test_what_the_build_needs_is_copied() -> None:
    needed = {"pyproject.toml", PROJECT["project"]["readme"], "LICENSE"}
    patterns: list[str] = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")}
    packages |= {name.partition(".")[0] for name in PROJECT["tool"]["setuptools"]["package-data"]}
    needed |= {p for p in packages if any(fnmatch(p, pattern) for pattern in patterns)}
    assert needed == set(copied())


def test_base_image_has_a_pinned_python_that_the_project_accepts() -> None:
    assert values("FROM") == ["${BASE} AS installed", "installed AS service", "installed AS command"]
    image, _, tag = substituted("${BASE}").partition(":")
    assert image == "python"
    version = re.match(r"\d+\.\d+", tag)
    assert version, "a version, not `latest`"
    assert version[0] in SpecifierSet(PROJECT["project"]["requires-python"])


def test_every_argument_has_a_default_and_a_use() -> None:
    assert set(arguments()) == {"BASE", "EXTRAS"}
    for name in arguments():
        assert f"${{{name}}}" in "\n".join(i.value for i in DOCKERFILE if i.keyword != "ARG"), name
    # An ARG before FROM is not seen after it: EXTRAS must be declared where it is used.
    order = [i.value.partition("=")[0] for i in DOCKERFILE if i.keyword in ("ARG", "FROM")]
    assert order.index("BASE") < order.index("${BASE} AS installed") < order.index("EXTRAS")


def test_documented_extras_exist() -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    documented = re.findall(r'EXTRAS="\[([^\]]*)\]"', TEXT)
    assert documented == ["cuda", "postgres"]
    assert {e for text in documented for e in text.split(",")} <= extras
    cuda = " ".join(PROJECT["project"]["optional-dependencies"]["cuda"])
    assert "cuda" in cuda
    assert "cudnn" in cuda


def test_only_known_programs_run() -> None:
    for words in commands():
        assert words[0] in PROGRAMS, words


def test_pip_installs_the_project_and_leaves_no_cache() -> None:
    pip = [words for words in commands() if words[0] == "pip"]
    assert pip == [["pip", "install", "--no-cache-dir", "--prefer-binary", "."]]


@IMAGES
def test_the_user_is_made_here_and_is_not_root(stage: str) -> None:
    made = {words[-1]: words for words in commands() if words[0] == "useradd"}
    user = last(stage, "USER").value
    assert user in made
    assert user not in ("root", "0")
    assert int(made[user][made[user].index("--uid") + 1]) > 0
    keywords = [i.keyword for i in stages()[stage]]
    at = len(keywords) - 1 - keywords[::-1].index("USER")
    assert at > max(i for i, k in enumerate(keywords) if k == "RUN"), "installed by root, run by the user"


def test_the_cache_folder_is_made_for_everyone() -> None:
    folder = next(v.partition("=")[2] for v in values("ENV") if v.startswith("XDG_CACHE_HOME="))
    assert ["install", "--directory", "--mode=1777", folder] in commands()


@IMAGES
def test_entry_point_is_the_projects_own(stage: str) -> None:
    assert last(stage, "ENTRYPOINT").array == ["superopt"]
    assert "superopt" in PROJECT["project"]["scripts"]


def test_the_default_command_works() -> None:
    done = superopt_runs(*last("command", "CMD").array)
    assert done.returncode == 0, done.stderr
    assert "optimize" in done.stdout


@IMAGES
def test_health_check_is_a_command_that_works(stage: str) -> None:
    flags, _, command = last(stage, "HEALTHCHECK").value.partition("CMD ")
    assert re.fullmatch(r"(--(interval|timeout|retries|start-period)=\w+ )+", flags)
    program, *words = Instruction(0, "HEALTHCHECK", command).array
    if stage == "command":
        assert program in PROJECT["project"]["scripts"]
        done = superopt_runs(*words)
        assert (done.returncode, __version__ in done.stdout) == (0, True), done.stderr
    else:
        assert (program, words) == ("python", ["-m", alive.__name__])


def test_a_build_without_a_target_gives_the_command() -> None:
    assert list(stages())[-1] == "command"


def test_the_service_listens_where_it_says_and_keeps_its_files_in_a_volume() -> None:
    pairs = (i.value.partition("=") for i in stages()["service"] if i.keyword == "ENV")
    environment = {name: value for name, _, value in pairs}
    settings = read_settings(environment=environment)
    assert int(last("service", "EXPOSE").value) == settings.port
    assert settings.needs_token, "it can be reached from elsewhere"
    assert str(settings.folder) == last("service", "VOLUME").value
    owned = ["install", "--directory", "--owner=superopt", "--group=superopt", "--mode=700", str(settings.folder)]
    assert owned in commands()
    arguments = build_parser().parse_args(last("service", "CMD").array)
    assert arguments.command == "serve"


def test_alive_says_whether_somebody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    monkeypatch.setenv("SUPEROPT_PORT", shop.url.rpartition(":")[2])
    assert alive.main() == 0
    shop.close()
    assert alive.main() == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no FROM"),
        ("RUN true\nFROM python:3.12\n", "RUN before FROM"),
        ("FROM python:3.12\nCOPPY a b\n", "unknown instruction 'COPPY'"),
        ("FROM python:3.12\nUSER\n", "USER without a value"),
        ("FROM python:3.12\nRUN true \\\n", "promises a continuation"),
        ("FROM python:3.12\nRUN true \\\n\nUSER x\n", "empty line inside"),
        ("FROM python:3.12\nCOPY superopt\n", "a source and a destination"),
        ("FROM python:3.12\nARG EXTRAS\n", "needs NAME=value"),
        ("FROM python:3.12\nENTRYPOINT superopt\n", "not a JSON array"),
        ("FROM python:3.12\nENTRYPOINT ['superopt']\n", "not a JSON array"),
        ('FROM python:3.12\nCMD ["--help", 1]\n', "array of strings"),
        ("FROM python:3.12\nCMD []\n", "array of strings"),
        ('FROM python:3.12\nRUN pip install ".\n', "No closing quotation"),
    ],
)
def test_the_parser_rejects(text: str, reason: str) -> None:
    with pytest.raises(BadDockerfile, match=re.escape(reason)):
        parse(text)


def test_the_parser_joins_lines_and_skips_comments() -> None:
    found = parse("# why\nFROM a:1\nRUN one \\\n  # between\n && two\n")
    assert found == [Instruction(2, "FROM", "a:1"), Instruction(3, "RUN", "one && two")]
