"""Records of every kind in one folder: doubtful, broken and hidden ones, alone and in archives."""

import re
import zipfile
from pathlib import Path

MOVES = ";B[cc];W[gg];B[cg];W[gc];B[ee];W[dd]"


def write_odd_records(folder: Path) -> Path:
    """Write the records into a new folder, and return it."""
    folder.mkdir()
    head = "(;GM[1]FF[4]SZ[9]"
    texts = {
        "komi.sgf": f"{head}KM[6.3]RU[Japanese]RE[W+0.5]BR[3d]WR[2d]DT[2021-02-03]{MOVES};B[hh])",
        "unread.sgf": f"{head}KM[many]RU[our own]RE[who knows]BR[strong]HA[x]DT[once]{MOVES};B[fh])",
        "illegal.sgf": f"{head}KM[5.5]{MOVES};B[hb];W[hb];B[aa])",
        "illegal-at-once.sgf": f"{head};B[ee];W[ee])",
        "off.sgf": f"{head};B[ee];W[zz];B[aa])",
        "suicide.sgf": f"{head}AW[ba][ab][bb][ca];B[ee];W[ff];B[gg];W[aa];B[ii])",
        "middle.sgf": f"{head}AB[cc][gg]HA[2];W[ee];B[ce]AW[aa];W[ec])",
        "setup.sgf": f"{head};B[ee];AW[dd]AB[ff];W[ef];B[])",
        "turned.sgf": f"{head}KM[6.3]RE[W+0.5]" + re.sub(r"\[(.)(.)\]", r"[\2\1]", f"{MOVES};B[hh]") + ")",
        "clash.sgf": f"{head}KM[6.3]RE[B+R]{MOVES};B[hh])",
        "broken.sgf": "(;GM[1]SZ[9];B[ee];W[e",
        "chess.sgf": "(;GM[3];B[ee])",
        "no-game.sgf": "nothing",
        "two.sgf": f"{head};B[ba])(;KM[0];B[ab];W[];B[cd])",
        "odd.sgf": "(;GM[go]SZ[5:9]PB[甲]PL[W];B[aa];B[bb])",
        "sina.sgf": f"(TE[A cup]RD[2003-4-5]KO[6.5]RE[B+R]PB[甲 三段]SZ[9]{MOVES};B[ff])",
        "unclosed.sgf": f"(;GM[5.5]SZ[9]{MOVES};B[fd]",
        "tail.sgf": f"{head}{MOVES};B[df])f];W[df])",
        "folded.sgf": f"{head}AP[foxwq]HA[0]KM[375];B[cc];B[gg];W[cg];B[gc];W[ee])",
        "placed.sgf": f"{head}HA[3];W[ee];B[ef];W[ff])",
        "no-stones.sgf": f"{head}HA[2]{MOVES};B[ed])",
        "unplaced.sgf": "(;GM[1]SZ[5]HA[2];W[bb];B[cc];W[dd])",
        "problem.sgf": f"{head}AB[aa][ab]AW[ba];B[bb];W[ca];B[da];W[ea])",
        "marks.sgf": f"{head}{MOVES};B[ei]LB[ei:A])",
        "five.sgf": "(;GM[1]SZ[20]RE[B+];B[jj];W[aa];B[kj];W[ba];B[ij];W[ca];B[lj];W[sa];B[hj])",
        "empty.sgf": head + ")",
        "games.txt": "7\t;B[pd];W[dp];B[pp]\n8\t;B[dd];W[qq];B[dq]\n",
        ".hidden.sgf": "x",
        "notes.txt": "x",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "gb.sgf").write_bytes(f"{head}PB[柯洁]C[\\]];B[aa];W[bb])".encode("gb18030"))
    long_game = "".join(f";{'BW'[i % 2]}[{'abcdefghi'[i % 9]}{'abcdefghi'[i // 9]}]" for i in range(55))
    with zipfile.ZipFile(folder / "near.zip", "w") as archive:
        archive.writestr("long.sgf", f"{head}{long_game};W[];B[])")
        archive.writestr("short.sgf", f"{head}{long_game[: 6 * 40]})")
        archive.writestr("../out.sgf", "(;SZ[9];B[ee])")
    (folder / "cut.zip").write_bytes((folder / "near.zip").read_bytes()[:200])
    return folder
