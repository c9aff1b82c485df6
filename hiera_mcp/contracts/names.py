"""Names of tensors and scalars: legal and harmless in C and C++, unique over the whole interface."""

import re
from collections.abc import Iterable

_KEYWORD_LIST = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
    xor xor_eq
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())

_TAKEN = re.compile(
    r"u?int(8|16|32|64)_t|size_t"  # types of the structs' fields, which C++ may not redeclare
    r"|.*_IS_NONE"  # ends the name of a constant
    r"|linux|unix|i386|errno|assert|offsetof|stdin|stdout|stderr|complex|I|math_errhandling"
    r"|[LMP]_.*|si_.*|sa_(handler|sigaction)|sched_priority|sigev_.*|st_[acm]time|sigmask"  # libc
    r"|cuda?[A-Z].*|NV_.*|nvtx.*",
    re.DOTALL,
)
"""Names that contract.h or a header of the compilers may define, besides those in upper case throughout."""

_MACRO_LIKE = re.compile(r"^(?=.*[A-Z].*[A-Z0-9_])[A-Z0-9_]+$")
"""Upper case throughout, two letters or more: the shape of a macro of some header (NAN, EOF, INT_MAX)."""


def legal(name: str, fallback: str = "arg") -> str:
    """`name` as a C identifier: ASCII, no keyword, no name that a header may define as a macro.

    A name that is legal and harmless already stays as it is.
    """
    text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name)).strip("_") or fallback
    if text[0].isdigit():
        text = f"{fallback}_{text}"
    if _MACRO_LIKE.match(text):
        text = text.lower()
    reserved = text in _KEYWORDS or _TAKEN.fullmatch(text) or text.lower().startswith("hiera")
    return f"{text}_" if reserved else text


class Namer:
    """Hands out legal names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def name(self, wanted: str, fallback: str = "arg") -> str:
        base = legal(wanted, fallback)
        name, n = base, 1
        while name in self._taken:
            n += 1
            name = f"{base.rstrip('_')}_v{n}"
        self._taken.add(name)
        return name
