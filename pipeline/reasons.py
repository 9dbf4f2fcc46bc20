"""What can become of a record or a member: the one list of statuses, reasons and flags.

Every word here is written to ``games.parquet`` or ``dataset.json`` and is explained in the README;
a test keeps the two lists equal. The module imports nothing of the project.
"""

from enum import StrEnum


class Status(StrEnum):
    """The five outcomes whose counts add up to the records seen."""

    KEPT = "kept"
    DUPLICATE = "duplicate"
    CONFLICTING = "conflicting"
    FILTERED = "filtered"
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why a member was skipped or refused, or a record filtered or rejected."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> "Reason":
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.meaning = meaning
        return reason

    # Members that are skipped: nothing in them was meant for us.
    HIDDEN = "hidden", "a hidden file or folder (its name starts with a dot)"
    RESOURCE_FORK = "resource-fork", "a macOS resource fork (`._name` or `__MACOSX/`)"
    NOT_A_RECORD = "not-a-record", "not an `.sgf` file, not an archive, and not a text of records"
    NOT_A_FILE = "not-a-file", "a device, pipe, socket, broken link or looping link"
    EXCLUDED = "excluded", "left out by `input.include` or `input.exclude`"
    # Members that are refused: they may hold games, but reading them is not safe or not possible.
    UNSAFE_MEMBER = "unsafe-member", "a path that leaves its archive, or a link inside an archive"
    MEMBER_TOO_LARGE = "member-too-large", "larger than `input.max_member_bytes` once unpacked"
    SWELLS = "swells", "the archive unpacks to more than `input.max_ratio` times its size"
    TOO_MANY_MEMBERS = "too-many-members", "more members than `input.max_members`"
    TOO_DEEP = "too-deep", "archives nested deeper than `input.max_depth`"
    ENCRYPTED = "encrypted", "needs a password"
    DAMAGED_ARCHIVE = "damaged-archive", "the archive (or the rest of it) cannot be read"
    DAMAGED_MEMBER = "damaged-member", "the member cannot be unpacked or fails its checksum"
    NEEDS_EXTRA = "needs-extra", 'an archive that is read with `pip install "goplanes[archives]"`'
    UNREADABLE = "unreadable", "the system refused to open or read the file"
    # Records that are filtered: good games that the configuration does not ask for.
    SIZE_FILTERED = "size-filtered", "the board is not one of `filter.sizes`"
    TOO_SHORT = "too-short", "fewer moves than `filter.min_moves`"
    TOO_LONG = "too-long", "more moves than `filter.max_moves`"
    HANDICAP_FILTERED = "handicap-filtered", "the handicap is outside `filter.handicap`"
    KOMI_FILTERED = "komi-filtered", "the komi is unknown or outside `filter.komi`"
    RESULT_FILTERED = "result-filtered", "the kind of result is not one of `filter.results`"
    RANK_FILTERED = "rank-filtered", "a rank is unknown or below `filter.min_rank` (of both players, or of either)"
    PLAYER_MISSING = "player-missing", "none of `filter.players` plays"
    PLAYER_FILTERED = "player-filtered", "a player is listed in `filter.players_exclude`"
    DATE_FILTERED = "date-filtered", "the date is unknown or outside `filter.dates`"
    RULES_FILTERED = "rules-filtered", "the rules are none of `filter.rules`"
    SOURCE_FILTERED = "source-filtered", "the source matches none of `filter.sources`"
    # Records that are rejected: no game can be made of them.
    NO_GAME = "no-game", "no game tree in the file (empty, binary or other text)"
    BAD_SYNTAX = "bad-syntax", "the game tree breaks off or is not SGF"
    EMPTY = "empty", "no move, no stone, no player and no result"
    NOT_GO = "not-go", "another game: GM names one, or it looks like gomoku"
    PROBLEM = "problem", "a problem or a lecture: few moves, no result, and a start that is no handicap, or marks"
    BAD_SIZE = "bad-size", "SZ is not a board size"
    UNSUPPORTED_SIZE = "unsupported-size", "a side of the board is larger than 25"
    BAD_MOVE = "bad-move", "the value of a B or W property is not a point"
    BAD_SETUP = "bad-setup", "the value of AB, AW or AE is not a point or a rectangle on the board"
    TWO_MOVES = "two-moves-in-one-node", "a node holds more than one move"
    MOVE_AND_SETUP = "move-and-setup-in-one-node", "a node after move 1 holds a move and setup stones"
    SETUP_AFTER_MOVE = "setup-after-move", "setup stones in mid-game, and the policy is `reject`"
    HANDICAP_UNKNOWN = "handicap-unknown", "a handicap without stones on a board that has no fixed points for it"
    ILLEGAL_SETUP = "illegal-setup", "the setup leaves a chain without liberties"
    OFF_BOARD = "off-board", "illegal move: outside the board"
    OCCUPIED = "occupied", "illegal move: on a stone"
    KO = "ko", "illegal move: retakes a ko at once"
    SUPERKO = "superko", "illegal move: repeats an earlier position under the record's rules"
    SUICIDE = "suicide", "illegal move: leaves its own chain without liberties"
    TOO_MANY_MOVES = "too-many-moves", "more than 65,535 moves"
    TASK_FAILED = "task-failed", "reading the record ended its worker process"


# Those of the status FILTERED.
FILTERS = frozenset({
    Reason.SIZE_FILTERED, Reason.TOO_SHORT, Reason.TOO_LONG, Reason.HANDICAP_FILTERED, Reason.KOMI_FILTERED,
    Reason.RESULT_FILTERED, Reason.RANK_FILTERED, Reason.PLAYER_MISSING, Reason.PLAYER_FILTERED, Reason.DATE_FILTERED,
    Reason.RULES_FILTERED, Reason.SOURCE_FILTERED,
})  # fmt: skip


class Flag(StrEnum):
    """A repair or a doubt noted with a record that is kept all the same."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> "Flag":
        flag = str.__new__(cls, code)
        flag._value_ = code
        flag.meaning = meaning
        return flag

    CHARSET_MISMATCH = "charset-mismatch", "the text is not in the charset that CA names"
    CHARSET_UNKNOWN = "charset-unknown", "CA names no charset that Python knows"
    CHARSET_GUESSED = "charset-guessed", "not UTF-8 nor in a charset given: the likeliest of `input.encodings`"
    TEXT_DAMAGED = "text-damaged", "bytes were lost: replaced by U+FFFD"
    OPENING_REPAIRED = "opening-repaired", "the `(` or `;` at the start of the game tree is missing: added"
    UNCLOSED = "unclosed", "the game tree is not closed at the end of the file or before the next game: closed there"
    REMAINS = "remains", "more SGF follows the end of the game tree, such as the tail of an older save: left out"
    OTHER_NAMES = "other-names", "event, date or komi under names of Sina's (TE, RD, KO)"
    INFO_BELOW_ROOT = "info-below-root", "a header property stands below the root"
    SIZE_ASSUMED = "size-assumed", "no SZ: 19x19"
    GAME_VALUE_ODD = "game-value-odd", "GM is the number of no game: taken for Go"
    KOMI_IN_GM = "komi-in-gm", "GM holds a number with a half, and there is no KM: taken for the komi"
    KOMI_UNUSABLE = "komi-unusable", "KM is not a komi: null"
    KOMI_REPAIRED = "komi-repaired", "KM was written in words or another unit: converted"
    KOMI_UNRECORDED = "komi-unrecorded", "KM is 0 in an even game, and stands for an unknown komi: null"
    KOMI_DEFAULT = "komi-default", "komi unknown: `rules.komi_default` used"
    KOMI_ASSUMED = "komi-assumed", "komi unknown: planes and globals show that of the rules"
    RESULT_UNREAD = "result-unread", "RE is not understood: unknown"
    RESULT_REPAIRED = "result-repaired", "the margin was counted in stones of two points each: converted"
    RESULT_CODE = "result-code", "the margin is no score but a server's code: the winner alone"
    KOMI_OVERRIDDEN = "komi-overridden", "the komi of an even game in a handicap game: 0"
    HANDICAP_UNUSABLE = "handicap-unusable", "HA is no number of stones: 0"
    HANDICAP_REPAIRED = "handicap-repaired", "HA was written in words: converted"
    HANDICAP_FOLDED = "handicap-folded", "handicap stones written as moves by a listed server: set up"
    HANDICAP_PLACED = "handicap-placed", "HA without stones, and White moves first: put on the fixed points"
    HANDICAP_MISSING = "handicap-missing", "HA without stones: the board is empty as written"
    RANK_UNREAD = "rank-unread", "a rank is not understood: null"
    RANK_OTHER = "rank-other", "a rating, a team or a title of unknown dan stands for a rank: null"
    RANK_TITLE = "rank-title", "a title stands for a rank: taken for professional 9 dan"
    RANK_IN_NAME = "rank-in-name", "a rank stands in a player's name: taken out of it"
    DATE_UNREAD = "date-unread", "DT is not a date: null"
    DATE_REPAIRED = "date-repaired", "DT has an era or a year of two digits: converted"
    RULES_UNREAD = "rules-unread", "RU is not understood: the default rules"
    PLAYER_MISMATCH = "player-mismatch", "PL disagrees with the first move: the move wins"
    SETUP_CONFLICT = "setup-conflict", "a point set up twice in one node: the last of AB, AW, AE wins"
    SETUP_IN_MID_GAME = "setup-in-mid-game", "setup stones after a move: applied, history restarts"
    SETUP_CUT = "setup-cut", "the game was cut before setup stones in mid-game"
    LECTURE = "lecture", "marks on the board, and no player and no result"
    ILLEGAL_TAIL = "illegal-tail", "the game was cut before an illegal move"
    COLOUR_TWICE = "colour-twice", "one side moves twice in a row"
    TURNED_COPY = "turned-copy", "equal to the game that is kept only after a turn or a reflection"
    PREFIX_OF = "prefix-of", "all its moves (30 at least) are the first of a longer game, up to the symmetries"
    NEAR_DUPLICATE_OF = "near-duplicate-of", "reaches the same position after as many moves as another game"


_MEANINGS: dict[str, str] = {word.value: word.meaning for word in (*Reason, *Flag)}


def meaning(code: str) -> str:
    """Return what a reason or a flag says; one of another version is not known here."""
    return _MEANINGS.get(code, "not known to this version")
