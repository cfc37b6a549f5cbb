"""What to tell someone whose quantity was refused.

Every message has the same shape: what was expected, what was found, and the nearest thing that would do. The
nearest thing is found by folding away what people get wrong (case, blanks, spelt-out words) from both the
text and the table.
"""

import difflib
import re

from mc.units.dimensions import Dimension, spellings

_LONG = 200
_WORDS = {
    "seconds": "s",
    "second": "s",
    "secs": "s",
    "sec": "s",
    "minutes": "min",
    "minute": "min",
    "mins": "min",
    "hours": "h",
    "hour": "h",
    "hrs": "h",
    "hr": "h",
    "msec": "ms",
    "usec": "us",
    "nsec": "ns",
    "bytes": "b",
    "byte": "b",
    "bits": "bit",
    "flops/s": "flop/s",
    "watts": "w",
    "watt": "w",
    "percent": "%",
    "pct": "%",
}


def explain(
    found: object,
    dimension: Dimension,
    *,
    number: str | None = None,
    unit: str | None = None,
    out_of_range: bool = False,
) -> str:
    """The full message for a refused quantity.

    Args:
        found: what the user gave.
        dimension: what it should have been.
        number: the part that reads as a number, if there is one.
        unit: the rest.
        out_of_range: whether it was well written but no float can hold it.
    """
    article = "an" if dimension.value[0] in "aeiou" else "a"
    examples = dimension.examples
    expected = f"expected {article} {dimension.value} such as {', '.join(examples[:-1])} or {examples[-1]}"
    shown = repr(found if not isinstance(found, str) or len(found) <= 60 else found[:57] + "...")
    if out_of_range:
        hint = "out of range for a number"
    elif number is None or unit is None:
        hint = _about_number(found, dimension)
    elif unit == "":
        hint = f"a bare number has no unit; write one out, such as {_bare(number, dimension)}"
    else:
        hint = _about_unit(number, unit, dimension)
    return f"{expected}; got {shown}" + (f": {hint}" if hint else "")


def _bare(number: str, dimension: Dimension) -> str:
    units = [re.sub(r"^[0-9.]+ ", "", example) for example in dimension.examples]
    return " or ".join(f"`{number} {unit}`" for unit in units[:2])


def _about_number(found: object, dimension: Dimension) -> str:
    text = found.strip() if isinstance(found, str) else ""
    if not isinstance(found, str):
        number = isinstance(found, float)
        return "a quantity has to be finite" if number else "a quantity is a number and a unit"
    if text == "":
        return "there is nothing there"
    if len(text) > _LONG:  # no spelling of anything; the patterns below take quadratic time on it
        return "out of range for a number"
    near = _near(text, dimension)
    if near:
        return f"the number is missing; did you mean {_choices('1', near)}?"
    if re.match(r"[+-]?\.?(nan|inf)", text, re.IGNORECASE):
        return "a quantity has to be finite"
    if re.match(r"[+-]?[0-9]+[0-9,]*,[0-9]", text):
        return f"a comma is no decimal point; write `{_without_commas(text)}`"
    if re.match(r"[+-]?[0-9]+[_' ][0-9]", text):
        return "digits are written without separators"
    if re.match(r"[+-]?[0-9.]+[eE][+-]?[0-9]{4}", text) or len(text) > 100:
        return "out of range for a number"
    return "a quantity starts with a number"


def _without_commas(text: str) -> str:
    head = re.match(r"[+-]?[0-9,.]+", text)
    digits = head[0] if head else ""
    # `1,5` is a decimal comma; `1,000,000` and `1,000.5` are thousands.
    thousands = re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3}){2,}|[+-]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]*", digits)
    mended = digits.replace(",", "") if thousands else digits.replace(",", ".")
    rest = text[len(digits) :]
    if not thousands and re.fullmatch(r"[+-]?[0-9]{1,3},[0-9]{3}", digits):
        return f"{digits.replace(',', '')}{rest}` or `{mended}{rest}"
    return mended + rest


def _about_unit(number: str, unit: str, dimension: Dimension) -> str:
    special = _trap(number, unit, dimension)
    if special is not None:
        return special
    near = _near(unit, dimension)
    if near:
        return f"did you mean {_choices(number, near)}?"
    owners = [other for other in Dimension if other is not dimension and unit in spellings(other)]
    if owners:
        return f"`{unit}` measures {' or '.join(owner.value for owner in owners)}, not {dimension.value}"
    close = difflib.get_close_matches(unit, spellings(dimension), n=2, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(f"`{number} {name}`" for name in close) + "?"
    return f"`{unit}` is no unit of {dimension.value}"


def _trap(number: str, unit: str, dimension: Dimension) -> str | None:
    """The well-known traps, where folding case would not say enough."""
    if re.match(r"[,_']|[0-9]|[eE][+-]?[0-9]", unit):
        return _about_number(number + unit if unit[0] in ",_'eE" else f"{number} {unit}", dimension)
    letter = unit[0].upper().replace("K", "k")  # decimal kilo is a small k
    if dimension is Dimension.SIZE and re.fullmatch(r"[kKMGTP]i?", unit):
        return f"did you mean `{number} {unit[0].upper()}iB` or `{number} {letter}B`?"
    if dimension is Dimension.SIZE and unit == "KB":
        return f"did you mean `{number} kB` (1000 bytes) or `{number} KiB` (1024 bytes)?"
    if dimension is Dimension.BANDWIDTH and re.fullmatch(r"[kKMGTP](/s)?", unit):
        return f"did you mean `{number} {letter}b/s` (bits) or `{number} {letter}B/s` (bytes)?"
    if dimension is Dimension.BANDWIDTH and re.fullmatch(r"[kMGT]i?Bps", unit):
        return f"did you mean `{number} {unit[:-2]}/s` (bytes)?"
    if dimension is Dimension.BANDWIDTH and re.fullmatch(r"[MG]T/s", unit):
        return "transfers are not bytes: multiply by the lanes and the encoding, and write GB/s"
    per_what = re.fullmatch(r"([fpnuµμm]?J)/[bB]", unit)
    if dimension is Dimension.ENERGY_PER_BIT and per_what:
        return f"did you mean `{number} {per_what[1]}/bit` or `{number} {per_what[1]}/byte`?"
    flops = re.fullmatch(r"([kMGTPEZ]?)FLOP[sS]", unit)
    if flops and dimension in (Dimension.COMPUTE, Dimension.COMPUTE_RATE):
        wanted = "FLOP" if dimension is Dimension.COMPUTE else "FLOP/s"
        return f"FLOPS may be a count or a rate; write `{number} {flops[1]}{wanted}`"
    return None


def _fold(unit: str) -> str:
    folded = re.sub(r"\s+", "", unit).casefold().replace("\u03bc", "u").replace("\u00b5", "u")
    for word, symbol in _WORDS.items():
        folded = re.sub(rf"{re.escape(word)}$", symbol, folded) if folded != symbol else folded
    return folded.replace("per", "/")


def _near(unit: str, dimension: Dimension) -> list[str]:
    folded = _fold(unit)
    return [name for name in spellings(dimension) if name.isascii() and _fold(name) == folded]


def _choices(number: str, near: list[str]) -> str:
    return " or ".join(f"`{number} {name}`{_gloss(name, near)}" for name in near)


def _gloss(name: str, near: list[str]) -> str:
    """Tell bits from bytes where both are offered."""
    if len(near) < 2 or not re.search(r"[bB]", name):
        return ""
    return " (bytes)" if "B" in name else " (bits)"
