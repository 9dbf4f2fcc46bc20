"""Which charset bytes are in where none is stated: how many bits each reading of them would cost.

A reading is scored by how usual its characters are in texts of that charset: kana and kanji for
Shift-JIS and EUC-JP, the common syllables for EUC-KR, the common characters for GB18030 and Big5,
single accented letters beside ASCII letters for Latin-1 and its like. The bits are minus the binary
logarithm of rough shares (a character of the list below, of the first or second level of the
charset, of its extensions), so that readings of the same bytes can be compared.
"""

import re
from functools import lru_cache
from itertools import product

_ASCII = 6.0  # bits of an ASCII character, so that one that is taken for a second byte is not free
_COMMON = 9.5
_COMMON_SYLLABLE = 7.5
_KANA = 7.5
_HALF_WIDTH = 13.0  # one byte, so that two of them cost more than what else two bytes can be
_LEVEL_1 = 13.5
_LEVEL_2 = 17.0
_SIGN = 12.0
_REST = 22.0  # extensions and characters for private use
_LOST = 30.0
_BESIDE_LETTER = 6.0  # a character of a two-byte charset that touches an ASCII letter
_HEAD_START = 3.0  # of each two-byte charset in the list over the next, of the first over any other
_MOST_A_LETTER = 14.0  # mean bits beyond which bytes are not text of a one-byte charset

# Usual in names, events, results and remarks; in the forms of China, Taiwan and Japan.
_HANZI = frozenset(
    "〇一二三四五六七八九十百千万萬两兩第届屆回期轮輪番局战戰戦赛賽杯盃级級段组組预預予选選決决挑手目子半胜勝负負敗败"
    "黑黒白中盘盤押和碁棋围圍囲名人本因坊王天元圣聖大国國际際日韩韓朝鲜鮮台湾灣美欧歐业業余餘专專職职院所协協会會社新"
    "闻聞报報电電视視快网網络絡友谊誼团團体體联聯应應氏富士通农農心甲乙丙场場先让讓受倒贴貼共完打挂掛读讀秒时時间間"
    "分钟鐘月年号號解说說讲講评評记記录錄谱譜位冠亚亞军軍少女男老青童世界亚洲城市公开開邀请請交流集训訓练練对對抗"
    "的了是不在有我他这這为為之来來以个個上们們到地也道出而要于於就下得可你生自那后後能着著事其里裡裏去行过過家用"
    "发發如然作方成者多都小无無同么麼经經法当當起与與好看学學进進种種将還还此前面又定见見只主没沒从從很更最已被把"
    "攻守活死杀殺劫征目地角边邊线線星变變化形势勢布收官错錯误誤正题題图圖答案参考問问题"
    "李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林高罗羅郑鄭梁谢謝宋唐许許冯馮邓鄧曹彭曾肖田董袁潘蒋蔣蔡"
    "杜叶葉程苏蘇魏吕呂丁任沈姚卢盧姜崔谭譚陆陸汪范金石廖贾賈夏韦韋付邹鄒孟熊秦邱江尹薛雷侯龙龍史陶黎贺賀顾顧毛"
    "郝龚龔邵钱錢严嚴武戴莫孔向汤湯常温古力柯洁潔柁睿耀宇昊昌永勋勲镐鎬哲俊文明华華伟偉建志强強平东東海峰飞飛超辉"
    "輝红紅玉春秋雪梅兰蘭英杰傑廷桓真瑞晓曉清源仁胜泰世石时時越承延党毅山嘉豪庆慶旭辰轩軒颖穎涛濤波磊刚剛军伯"
    "藤井村木川野原加佐伊坂橋桥松竹沢澤泽治光秀雄夫彦郎太朗恵理谷依羽根直樹树栩結结城聡聪河臨临芝虎丸関关航遼辽宮宫"
    "岩岡冈久保岛島崎内坪岸桑前尾上渡邊辺部長长安福西南北今次政昭弘義义信孝男啓启祐悠晋輔"
)  # fmt: skip
_SYLLABLES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유홍전고문양손배백허남심노하곽성차주우구민진나지엄원천방공현함변염여추도"
    "소석선설마길연위표명기반왕금옥육인맹제모탁국은영수경상철호준재훈태희동욱승창혁용규환종광화미숙자순애혜"
    "바둑단급흑불계집시간대결예본회리그농심라면삼세계중일프로아가는을를의에다니까과와년월초으있었했습것들한"
)
# A row: first and last lead byte, first second byte, bits; what is in no row costs _REST.
_ROWS: dict[str, tuple[tuple[int, int, int, float], ...]] = {
    "gb18030": ((0xA1, 0xA3, 0xA1, _SIGN), (0xB0, 0xD7, 0xA1, _LEVEL_1), (0xD8, 0xF7, 0xA1, _LEVEL_2)),
    "cp949": ((0xA1, 0xA3, 0xA1, _SIGN), (0xB0, 0xC8, 0xA1, _LEVEL_1), (0xCA, 0xFD, 0xA1, _LEVEL_2)),
    "cp950": ((0xA1, 0xA3, 0x40, _SIGN), (0xA4, 0xC6, 0x40, _LEVEL_1), (0xC9, 0xF9, 0x40, _LEVEL_2)),
    "cp932": ((0x81, 0x81, 0x40, _SIGN), (0x82, 0x83, 0x40, _KANA), (0x88, 0x97, 0x40, _LEVEL_1),
              (0x98, 0x9F, 0x40, _LEVEL_2), (0xE0, 0xEA, 0x40, _LEVEL_2)),
    "euc_jp": ((0xA1, 0xA3, 0xA1, _SIGN), (0xA4, 0xA5, 0xA1, _KANA), (0xB0, 0xCF, 0xA1, _LEVEL_1),
               (0xD0, 0xF4, 0xA1, _LEVEL_2)),
}  # fmt: skip
_ROWS["big5"] = _ROWS["big5hkscs"] = _ROWS["cp950"]

_NO_TEXT = re.compile(r"[\x80-\x9f\ufffd\uf8f0-\uf8f3]")  # lost, a control, or a byte that no character begins with
_ASCII_TEXT = re.compile(r"[\x00-\x7f]+")
_AFTER_LETTER = re.compile(r"[^\x00-\x7f](?<=[A-Za-z].)")
_BEFORE_LETTER = re.compile(r"[a-z](?<=[^\x00-\x7f].)")
_RUN = re.compile(r"([A-Za-z]?)([^\x00-\x7f]+)(?=([A-Za-z]?))")
_USUAL_LETTERS = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüßœÀÁÂÄÅÇÈÉÊÍÑÓÔÖØÚÜ")


def cheapest(readings: dict[str, str]) -> str | None:
    """The codec whose reading is the most plausible, of readings of the same bytes in order of preference.

    ``readings``: codec to text, lost bytes as U+FFFD. None where none of them is text: too much of it
    is lost, or the best one is of a one-byte charset, which reads any bytes, and its letters make no words.
    """
    best: tuple[float, str] | None = None
    for place, (codec, text) in enumerate(readings.items()):
        high = _ASCII_TEXT.sub("", text)
        bits = _bits(codec, text, high)
        mean = bits / max(1, len(high))
        bits += _ASCII * (len(text) - len(high)) + _HEAD_START * (place if codec in _ROWS else min(place, 1))
        is_text = (codec in _ROWS or mean <= _MOST_A_LETTER) and 4 * len(_NO_TEXT.findall(high)) <= len(high)
        if is_text and (best is None or bits < best[0]):
            best = bits, codec
    return None if best is None else best[1]


def is_two_byte(codec: str) -> bool:
    """Whether a codec reads two bytes as one character, the second of which may be ASCII or not."""
    return codec in _ROWS


def _bits(codec: str, text: str, high: str) -> float:
    """The bits of the characters that are not ASCII."""
    if codec not in _ROWS:
        return _bits_of_letters(text)
    table = _table(codec)
    beside = len(_AFTER_LETTER.findall(text)) + len(_BEFORE_LETTER.findall(text))
    return sum(table.get(character, _REST) for character in high) + _BESIDE_LETTER * beside


def _bits_of_letters(text: str) -> float:
    """Accented letters stand alone or in twos in a word of ASCII letters; letters of other scripts among their own."""
    bits = 0.0
    for match in _RUN.finditer(text):
        alone = not (match[1] or match[3])
        run = match[2]
        for letter in run:
            if letter == "\ufffd":
                bits += _LOST
            elif "\u0370" <= letter < "\u0460" or "\u05d0" <= letter < "\u0650":
                bits += 8.0  # Greek, Cyrillic, Hebrew, Arabic
            elif not (letter.isalpha() and letter < "\u0180"):
                bits += _REST if letter < "\xa0" or letter.isalpha() else _SIGN
            else:
                bits += (8.0 if letter in _USUAL_LETTERS else 11.0) + (8.0 if len(run) > 2 else 4.0 if alone else 0.0)
    return bits


@lru_cache(maxsize=len(_ROWS))
def _table(codec: str) -> dict[str, float]:
    """Bits of each character of a two-byte charset."""
    table = {"\ufffd": _LOST}
    for first, last, low, bits in _ROWS[codec]:
        for pair in product(range(first, last + 1), range(low, 0xFF)):
            character = bytes(pair).decode(codec, "ignore")
            if len(character) == 1:
                table[character] = _COMMON if character in _HANZI and codec != "cp949" else bits
    if codec == "cp949":
        table.update(dict.fromkeys(_SYLLABLES, _COMMON_SYLLABLE))
    if codec == "cp932":
        table.update(dict.fromkeys(map(chr, range(0xFF61, 0xFFA0)), _HALF_WIDTH))
    return table
