"""A data set that grows week by week out of an archive's records, and is made compact at the end.

    python tests/e2e/weekly_growth.py ARCHIVE [--weeks 4] [--set key=value ...]

The members of ARCHIVE (zip or tar) are dealt out to as many zips as there are weeks; each week one more lies in the
input folder. After every week the data set must verify; games keep their ids, status and parts, shards their bytes, and
no key is stored twice. After ``goplanes compact`` all files must equal those of one build of all weeks.
"""

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from pipeline import open_dataset

DATE = (2024, 1, 1, 0, 0, 0)


def records(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the members of an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, opened.read(name)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


def deal(archive: Path, folder: Path, weeks: int) -> list[Path]:
    """Write the members in turn into one zip a week; return these."""
    members = list(records(archive))
    paths = []
    for week in range(weeks):
        paths.append(folder / f"week-{week + 1:02}.zip")
        with zipfile.ZipFile(paths[-1], "w", zipfile.ZIP_DEFLATED) as made:
            for name, data in members[week * len(members) // weeks : (week + 1) * len(members) // weeks]:
                made.writestr(zipfile.ZipInfo(name, DATE), data)
    return paths


def goplanes(*arguments: str) -> str:
    """Run the command; return what it said. Stops at any exit code but 0."""
    done = subprocess.run([sys.executable, "-m", "pipeline", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"goplanes {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every published file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".goplanes" not in path.parts
    }


def games_of(folder: Path) -> dict[int, tuple[str, str, int]]:
    """Return status, part and rows of every game by its id."""
    table = pq.read_table(folder / "games.parquet", columns=["game", "status", "split", "rows"])
    columns = (table.column(name).to_pylist() for name in ("status", "split", "rows"))
    return dict(zip(table.column("game").to_pylist(), zip(*columns, strict=True), strict=True))


def repeated_keys(folder: Path) -> int:
    """Return how many stored keys occur in more than one row; images of a row apart."""
    seen: set[int] = set()
    repeats = 0
    for batch in open_dataset(folder).batches(columns=["key", "game", "ply"], batch_size=65_536):
        for key, game, ply in zip(*(batch[name].tolist() for name in ("key", "game", "ply")), strict=True):
            word = hash((key, game, ply))
            repeats += key in seen and word not in seen
            seen |= {key, word}
    return repeats


def main() -> None:
    """Read the command line and grow."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--weeks", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    settings = [word for setting in arguments.settings for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "later").mkdir()
        (folder / "in").mkdir()
        output = folder / "set"
        before_games: dict[int, tuple[str, str, int]] = {}
        before_files: dict[str, str] = {}
        for week in deal(arguments.archive, folder / "later", arguments.weeks):
            week.rename(folder / "in" / week.name)
            goplanes("build", "--input", str(folder / "in"), "--output", str(output), *settings)
            goplanes("verify", str(output))
            games, files = games_of(output), hashes(output)
            moved = [game for game, facts in before_games.items() if games.get(game) != facts]
            changed = [name for name in before_files if name.startswith("t") and files.get(name) != before_files[name]]
            changed += [
                name for name in before_files if name.startswith("val") and files.get(name) != before_files[name]
            ]
            repeats = repeated_keys(output)
            print(
                f"{week.name}: {len(games):,} records, {len(files):,} files, verified; {len(moved)} games changed, "
                f"{len(changed)} shards changed, {repeats} keys in two rows",
                flush=True,
            )
            if moved or changed or repeats:
                raise SystemExit(1)
            before_games, before_files = games, files
        goplanes("compact", str(output))
        goplanes("verify", str(output))
        goplanes("build", "--input", str(folder / "in"), "--output", str(folder / "once"), *settings)
        one, other = hashes(output), hashes(folder / "once")
        different = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        print(f"compact: {len(one):,} files, different from one build: {', '.join(different) or 'none'}")
        if different:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
