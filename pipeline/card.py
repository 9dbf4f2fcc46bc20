"""The data card: a README.md inside every data set, in plain words, from the manifest alone."""

from collections.abc import Sequence

from pipeline.manifest import Manifest
from pipeline.reasons import Flag


def _meanings(manifest: Manifest) -> dict[str, str]:
    """Return what each column of this data set means; those that no data set of its kind has are there too."""
    layout, (rows, cols) = manifest.layout, manifest.frame
    form = f"{layout.plane_bytes} bytes a row, packed, most significant bit first"
    if not layout.packed:
        form = f"{rows} x {cols} bytes a row, 0 or 1 each"
    unknown = "null" if layout.format == "parquet" else "NaN"
    label, value = ("most often", "mean result") if layout.aggregate else ("", "result")
    return {
        "planes": f"feature planes, {len(layout.planes)} x {form}",
        "globals": f"{len(layout.globals)} numbers of the whole position, float32",
        "move": f"the move played {label}".strip() + f": row * {cols} + column, {layout.area} is a pass",
        "policy_moves": "all moves played there, in rising order",
        "policy_counts": "how often each of them was played",
        "policy_offsets": "row i has the entries offsets[i] to offsets[i + 1] of both",
        "value": f"the {value} from the side to move: 1 won, -1 lost, 0 drawn, {unknown} unknown",
        "wins": "known results that the side to move won",
        "draws": "known results that were draws",
        "losses": "known results that the side to move lost",
        "weight": "how many equal positions the row stands for, each times its sampling weight",
        "score": f"points for the side to move, where the record states them, else {unknown}",
        "to_play": "1 Black, 2 White",
        "komi": f"as recorded, {unknown} unknown",
        "rows": "of the board, which lies in the top-left corner of the frame",
        "cols": "of the board",
        "symmetry": "the image stored: bit 0 flips rows, bit 1 flips columns, bit 2 transposes, in this order",
        "game": "id of the game (see games.parquet)",
        "ply": "moves before the position",
        "key": "the position's key, the same under all symmetries",
        "key_hi": "the upper 64 bits of the key",
    }


def _numbered(title: str, names: Sequence[str]) -> list[str]:
    """Return a section that lists names by number, nothing where there are none."""
    listed = [f"{number}. {name}" for number, name in enumerate(names)]
    return [f"## {title}", "", *listed, ""] if names else []


def _growth_lines(manifest: Manifest) -> list[str]:
    """Return what the rows do not know because the data set has grown, nothing where it has not."""
    growths = manifest.growths
    if not growths:
        return []
    kept, left_out, stale = (sum(getattr(each, name) for each in growths) for name in ("kept", "left_out", "stale"))
    times = "once" if len(growths) == 1 else f"{len(growths):,} times"
    text = f"Grown {times} since the first build, by {kept:,} games (column `growth` of `games.parquet`)."
    if left_out:
        text += (
            f" {left_out:,} of their positions repeat a row that was there and were left out, so the counts of up to "
            f"{stale:,} rows are stale. `goplanes compact` makes them exact."
        )
    return [text]


def data_card(manifest: Manifest) -> str:
    """Return the Markdown text of a data set's card."""
    scheme, rows, records = manifest.scheme, manifest.rows, manifest.records
    layout, meanings = manifest.layout, _meanings(manifest)
    in_lists = ("policy_offsets",) if layout.format == "parquet" else ()  # lists know where they end
    counts = ", ".join(f"{count:,} {name}" for name, count in records.model_dump().items() if name != "seen")
    assumed = f"{manifest.flags.get(Flag.KOMI_ASSUMED, 0):,} records with the flag {Flag.KOMI_ASSUMED}"
    lines = [
        f"# Go positions, scheme {scheme.name}",
        "",
        f"Made by {manifest.software}. {rows.train:,} rows in train, {rows.val:,} in val, {rows.test:,} in test, "
        f"on a frame of {manifest.frame[0]} x {manifest.frame[1]} points, as {manifest.storage.format}.",
        f"From {records.seen:,} records: {counts}.",
        "Games were split before anything else, so that equal and turned copies of a game are in one part.",
        *_growth_lines(manifest),
        *([f"{assumed}: {Flag.KOMI_ASSUMED.meaning}."] if Flag.KOMI_ASSUMED in manifest.flags else []),
        "",
        "## Columns",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {name} | {meanings[name]} |" for name in layout.names if name not in in_lists),
        "",
        *_numbered("Planes", scheme.planes),
        *_numbered("Globals", scheme.globals),
        "## Reading it",
        "",
        "```python",
        "import pipeline",
        "",
        'dataset = pipeline.open_dataset(".")',
        'for batch in dataset.batches("train", batch_size=256, dtype="float32"):',
        '    planes, move, value = batch["planes"], batch["move"], batch["value"]',
        *(['    numbers = batch["globals"]'] if layout.globals else []),
        "```",
        "",
    ]
    return "\n".join(lines)
