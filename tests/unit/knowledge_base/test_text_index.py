"""What the index remembers of single words adds up to what FTS5 says of whole queries."""

from hypothesis import given
from hypothesis import strategies as st

from hiera_mcp.knowledge_base.entries import packaged_entries
from hiera_mcp.knowledge_base.text_index import COLUMN_WEIGHTS, TextIndex

ENTRIES = packaged_entries()
GROUPS = [number % 3 for number in range(len(ENTRIES))]
INDEX = TextIndex(list(zip(ENTRIES, GROUPS, strict=True)))
WORDS = ["cp.async", "tile", "tiles", "wgmma", "shared", "memory", "sm_80+", "warp", "reduction", "the"]
WHOLE = f"""
SELECT rowid, -bm25(words, {COLUMN_WEIGHTS}) AS relevance FROM words WHERE words MATCH ?
ORDER BY relevance DESC, rowid"""

some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True)


@given(some_words)
def test_the_relevance_of_a_query_is_what_fts5_computes_for_all_its_words_at_once(words: list[str]) -> None:
    connection = INDEX._connection  # pyright: ignore[reportPrivateUsage]
    whole = dict(connection.execute(WHOLE, (" OR ".join(f'"{word}"' for word in words),)).fetchall())
    found = INDEX.search(" ".join(words), None, len(ENTRIES))
    assert {number: round(relevance, 9) for number, relevance in found} == {n: round(r, 9) for n, r in whole.items()}
    assert [(-relevance, number) for number, relevance in found] == sorted((-r, n) for n, r in found)


@given(some_words, st.sets(st.integers(0, 2), min_size=1))
def test_a_filter_takes_entries_away_and_changes_no_relevance(words: list[str], groups: set[int]) -> None:
    everything = INDEX.search(" ".join(words), None, len(ENTRIES))
    some = INDEX.search(" ".join(words), tuple(groups), len(ENTRIES))
    assert some == [(number, relevance) for number, relevance in everything if GROUPS[number] in groups]


@given(some_words)
def test_case_and_signs_mean_nothing_and_asking_again_changes_nothing(words: list[str]) -> None:
    first = INDEX.search(" ".join(words), None, 10)
    assert INDEX.search(" ".join(f"({word.upper()})," for word in words), None, 10) == first
    assert INDEX.search(" ".join(words), None, 10) == first


def test_letters_beyond_ascii_are_left_to_fts5() -> None:
    assert INDEX.search("tîle", None, 5) == INDEX.search("tile", None, 5)
    assert INDEX.search("名前", None, 5) == []


def test_ranking_common_words_beforehand_changes_no_answer() -> None:
    many = [(entry, 0) for _ in range(4) for entry in ENTRIES]  # so that there are common words
    fresh, prepared = TextIndex(many), TextIndex(many)
    prepared.prepare()
    for query in ("the tile", "shared memory", "cp.async of a warp"):
        assert prepared.search(query, None, 20) == fresh.search(query, None, 20)
