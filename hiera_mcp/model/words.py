"""The words of a query, as SQLite's full-text search takes them."""


def phrases(query: str) -> tuple[str, ...]:
    """The different words of a query as FTS5 strings, in which nothing is syntax; `cp.async` is the phrase of its parts.

    Words without a letter or digit are left out: no text holds them.
    """
    text = query.encode("utf-8", "ignore").decode().replace("\0", " ")  # what SQLite cannot take as a string
    words = dict.fromkeys(word for word in text.split() if any(c.isalnum() for c in word))
    return tuple('"' + word.replace('"', '""') + '"' for word in words)
