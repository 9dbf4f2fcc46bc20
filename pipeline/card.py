"""The data card: a README.md inside every data set, in plain words, from the manifest alone."""

from pipeline.manifest import Manifest

_COLUMNS = """\
| column | meaning |
|---|---|
| planes | feature planes, {planes} x {form} |
| move | the move played: row * {cols} + column, {area} is a pass |
| value | the result from the side to move: 1 won, -1 lost, 0 drawn, {unknown} unknown |
| weight | how many equal positions the row stands for |
| score | points for the side to move, where the record states them |
| to_play | 1 Black, 2 White |
| komi | as recorded, {unknown} unknown |
| rows, cols | the board, in the top-left corner of the frame |
| symmetry | the image stored: bit 0 flips rows, bit 1 flips columns, bit 2 transposes, in this order |
| game, ply, key | the game (see games.parquet), moves before the position, the position's key |
"""


def data_card(manifest: Manifest) -> str:
    """Return the Markdown text of a data set's card."""
    scheme, rows, records = manifest.scheme, manifest.rows, manifest.records
    layout = manifest.layout
    counts = ", ".join(f"{count:,} {name}" for name, count in records.model_dump().items() if name != "seen")
    lines = [
        f"# Go positions, scheme {scheme.name}",
        "",
        f"Made by {manifest.software}. {rows.train:,} rows in train, {rows.val:,} in val, {rows.test:,} in test, "
        f"on a frame of {manifest.frame[0]} x {manifest.frame[1]} points, as {manifest.storage.format}.",
        f"From {records.seen:,} records: {counts}.",
        "Games were split before anything else, so that equal and turned copies of a game are in one part.",
        "",
        "## Columns",
        "",
        _COLUMNS.format(
            planes=len(scheme.planes),
            form=f"{layout.plane_bytes} bytes a row, packed, most significant bit first"
            if layout.packed
            else f"{manifest.frame[0]} x {manifest.frame[1]} bytes a row, 0 or 1 each",
            unknown="null" if layout.format == "parquet" else "NaN",
            cols=manifest.frame[1],
            area=layout.area,
        ),
        "## Planes",
        "",
        *(f"{number}. {name}" for number, name in enumerate(scheme.planes)),
        "",
        "## Reading it",
        "",
        "```python",
        "import pipeline",
        "",
        'dataset = pipeline.open_dataset(".")',
        'for batch in dataset.batches("train", batch_size=256, dtype="float32"):',
        '    planes, move, value = batch["planes"], batch["move"], batch["value"]',
        "```",
        "",
    ]
    return "\n".join(lines)
