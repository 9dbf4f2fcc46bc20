"""Builds that kill themselves, each in a process of its own; ``test_cases.py`` runs this as a script.

``python killed_builds.py CONFIG.json`` forks a child for each build, one after the other:

- ``whole``: one that runs to its end;
- ``killed-N`` for every file N that it published, from 0: sends itself SIGKILL where it would give file N its name,
  with half of the file written under its temporary name;
- ``chain``: in one folder, killed at file 0, then the resumed build at its file 1, that one at its file 2, and so on
  until one ends.

The folders lie where ``output.path`` is, under these names. Prints, as JSON, the files ``whole`` published in their
order, and how many kills the chain took.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

from pipeline import files
from pipeline.build import build
from pipeline.config import Config
from pipeline.progress import Progress
from pipeline.schemes import find_scheme
from pipeline.warm import warm_up


def build_until(config: Config, kill: int | None, log: Path) -> None:
    """Build; die while file number ``kill`` is being published. The names of published files go to ``log``."""
    published = 0
    replace = os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        nonlocal published
        if Path(source).is_dir():  # the work of a build that has ended
            return replace(source, target)
        if published == kill:
            os.truncate(source, os.path.getsize(source) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
        published += 1
        with log.open("a") as lines:
            lines.write(f"{Path(target).relative_to(str(config.output.path))}\n")

    files.os.replace = replace_or_die  # type: ignore[attr-defined]
    build(config)


def run(config: Config, name: str, kill: int | None) -> tuple[bool, list[str]]:
    """Run one build in a child; return whether it was killed, and the files it published."""
    output = Path(str(config.output.path))
    log = output.with_suffix(".log")
    log.write_text("")
    config = config.model_copy(update={"output": config.output.model_copy(update={"path": str(output / name)})})
    child = os.fork()
    if child == 0:
        try:
            build_until(config, kill, log)
        finally:
            if failed := sys.exc_info()[0] is not None:
                traceback.print_exc()
            os._exit(int(failed))
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"{name}: ended with status {status}")
    return killed, log.read_text().splitlines()


def main() -> None:
    """Run all builds; kernels are loaded once, before the first fork."""
    config = Config.model_validate(json.loads(Path(sys.argv[1]).read_text()))
    warm_up(Progress(quiet=True), find_scheme(config.encode.scheme), config.augment.mode != "none")
    _, published = run(config, "whole", None)
    for number in range(len(published)):
        killed, before = run(config, f"killed-{number}", number)
        if not killed or before != published[:number]:
            raise SystemExit(f"killed-{number}: published {before}")
    kills = 0
    while run(config, "chain", kills)[0]:
        kills += 1
    sys.stdout.write(json.dumps({"published": published, "kills": kills}))


if __name__ == "__main__":
    main()
