"""superopt against onnxruntime alone, against its peers, and against merging by hand (`make bench-optimizer`).

    python benchmarks/optimizer.py [--models DIR]… [--only REGEX] [--budget S] [--save] [-- OPTIONS of optimize]

Every model is optimized by its own `superopt optimize`, the result is audited, and then superopt's result, the
original and what the peers made of it are timed in one interleaved `superopt bench`, all under onnxruntime's full
optimization. The models are those fetched by fetch.py, those of exported.toml found in the folders given, and those of
built.py, some of which are also there merged by hand.

What is found out about a model is kept, and not found out again while model, code and options stay the same: a run
that was stopped goes on where it was. Exit code 1 if a run failed, an audit failed, or a result is slower than the
original, a peer's or the one merged by hand, beyond noise.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import graphs, standings, subjects
from benchmarks.examination import Choices, Examination, now
from benchmarks.peers import PEERS, Installed, Peers
from benchmarks.records import BY_HAND, ORIGINAL, Result
from benchmarks.subjects import Subject
from benchmarks.texts import aligned, without_folders

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def chosen(models: Sequence[Path], every: Sequence[Path], built: Path, pattern: str) -> list[Subject]:
    found = [*subjects.fetched(), *subjects.exported(models), *subjects.networks_built(built, pattern)]
    for folder in every:
        found += subjects.in_folder(folder)
    return [subject for subject in found if re.search(pattern, subject.name)]


def keep_out_of_git(folder: Path) -> None:
    """What is made here belongs to this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")


def describe(wanted: Sequence[Subject]) -> str:
    rows = [("model", "group", "nodes", "MB", "by hand")]
    for subject in wanted:
        seen, hand = graphs.facts(subject.path), "yes" if subject.hand else ""
        rows.append((subject.name, subject.group, str(seen.nodes), f"{seen.file_bytes / 1e6:.1f}", hand))
    return aligned(rows)


def prepare(wanted: Sequence[Subject], peers: Peers, target: str) -> None:
    for subject in wanted:
        for outcome in peers.outcomes(subject, target):
            what = f"{outcome.status}, {outcome.nodes} nodes, {outcome.seconds:.1f} s"
            print(f"{subject.name}: {outcome.peer} {outcome.version}: {what} {outcome.detail}".rstrip(), flush=True)


def heading(results: Sequence[Result], command: str, installed: Mapping[str, Installed]) -> list[str]:
    lines = [command, f"{min(r.date for r in results)} to {max(r.date for r in results)}"]
    if e := next((r.environment for r in results if r.environment), None):
        lines += [
            f"{e.target}: {e.device}, driver {e.driver or '-'}, {e.threads} threads, {e.platform}",
            f"superopt {e.superopt}, onnxruntime {e.onnxruntime}, onnx {e.onnx}, Python {e.python}",
        ]
    have = [f"{package} {found.version}" for package, found in installed.items() if found.version]
    lines.append("peers: " + (", ".join(have) or "not run"))
    lines += [f"  {package}: not installable here" for package, found in installed.items() if found.problem]
    return [
        *lines,
        "columns from `original` to `by hand`: that model's time over superopt's, with its 95 % interval, from one",
        "interleaved run at full optimization; above 1, superopt's is faster; ! where it is slower beyond 2 %",
    ]


def save(path: Path, text: str, content: Mapping[str, object]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".txt").write_text(text)
    path.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def parse(words: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """Our own options, and those after `--`."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", action="append", type=Path, default=[], metavar="DIR", help="exported networks")
    parser.add_argument("--every", action="append", type=Path, default=[], metavar="DIR", help="also every .onnx here")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose name matches")
    parser.add_argument("--target", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="of optimize, for each model")
    parser.add_argument("--timing", type=float, default=60.0, metavar="SECONDS", help="for timing all of one model")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", metavar="DIR", help="what was found out")
    parser.add_argument("--peers", type=Path, default=HERE / ".peers", metavar="DIR", help="the peers' environment")
    parser.add_argument("--skip-peers", action="store_true", help="original, superopt and by hand only")
    parser.add_argument("--again", action="store_true", help="find out everything again, except what peers made")
    parser.add_argument("--stale", action="store_true", help="take what is known, also from other code and options")
    parser.add_argument("--prepare", action="store_true", help="run the peers and stop: nothing is timed")
    parser.add_argument("--list", action="store_true", help="name the models and stop")
    parser.add_argument("--save", action="store_true", help="write results/optimizer-TARGET.txt and .json")
    return parser.parse_args(words[:cut]), tuple(words[cut + 1 :])


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    options, extra = parse(words)
    for folder in (options.cache, options.peers):
        keep_out_of_git(folder)
    wanted = chosen(options.models, options.every, options.cache / "built", options.only)
    if options.list:
        print(describe(wanted))
        return 0
    if not wanted:
        print("no model matches", file=sys.stderr)
        return 2
    peers = None if options.skip_peers else Peers(options.peers, options.cache / "peers")
    if options.prepare:
        if peers:
            prepare(wanted, peers, options.target)
        return 0
    choices = Choices(
        options.target, options.budget, options.timing, options.cache, extra, options.again, options.stale
    )
    names = tuple(peer.name for peer in PEERS) if peers else ()
    examination = Examination(choices, peers)
    results: list[Result] = []
    for subject in wanted:
        results.append(examination.result(subject))
        print("  ".join(standings.row(results[-1], (ORIGINAL, *names, BY_HAND))), file=sys.stderr, flush=True)
    command = shlex.join(["python", "benchmarks/optimizer.py", *map(without_folders, words)])
    installed = peers.installed if peers else {}
    lines = heading(results, command, installed)
    text = "\n".join([*lines, "", standings.table(results, names), "", *standings.summary(results, names)]) + "\n"
    print(text, end="")
    if options.save:
        content = {
            "command": command,
            "date": now(),
            "peers": {package: vars(found) for package, found in installed.items()},
            "geometric_means": standings.means(results, names),
            "models": [result.model_dump(mode="json") for result in results],
        }
        save(RESULTS / f"optimizer-{options.target}", text, content)
    return int(any(standings.problems(result) for result in results))


if __name__ == "__main__":
    sys.exit(main())
