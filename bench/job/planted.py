"""Rows around a few movies that have all that the largest queries ask for.

Joins of ten and more tables would find nothing in rows that are drawn one by one. The first rows of
each table are about the first movies, persons and companies instead.
"""

from __future__ import annotations

from typing import Any

from bench.job.values import FIXED, KEYWORDS

MOVIES = 24
# In turn for each movie: an actress with a voice, a writer, a producer, an actor in a part.
_CAST = (
    ("(voice)", "actress", 0),
    ("(writer)", "writer", 1),
    ("(producer)", "producer", 2),
    ("(voice)", "actor", 3),
)
_INFO = (
    ("release dates", "USA:May 2008", "internet"),
    ("genres", "Horror", None),
    ("countries", "Germany", None),
    ("budget", "$1,000", None),
)
_RATINGS = (("rating", "6.{}"), ("votes", "{}00"), ("top 250 rank", "{}"), ("rating", "8.{}"))
_KEYWORDS = ("sequel", "murder", "computer-animation", "character-name-in-title", "superhero")
_COMPANIES = (
    ("production companies", None),
    ("production companies", "(presents) (2008)"),
    ("distributors", "(Japan) (2007)"),
)
_CAST_TYPES = (("cast", "complete+verified"), ("crew", "complete"), ("cast", "complete"))
_LINKS = ("follows", "features", "followed by")
_BIOGRAPHIES = ("mini biography", "trivia")


def planted(table: str, number: int) -> dict[str, Any]:
    """Return the values of a row if it is one of those; `number` is its key, from 1."""
    turn, place = divmod(number - 1, MOVIES)
    movie = place + 1
    values: dict[str, Any] | None = None
    match table:
        case "title" if turn == 0:
            title = ("Shrek 2", "Champion", "Vampire", "Money", "Jason")[place % 5]
            return {"title": title, "production_year": 1996 + place % 15, "kind_id": 1}
        case "name" if turn == 0:
            return {"name": f"Angela {movie}", "gender": "f", "name_pcode_cf": "B1"}
        case "name" if turn == 1:
            return {"name": f"Berg, Tim {movie}", "gender": "m", "name_pcode_cf": "D1"}
        case "char_name" if turn == 0:
            return {"name": ("Queen", "Iron Man", "Batman")[place % 3]}
        case "company_name" if turn == 0:
            name = ("Warner Film", "Lionsgate", "Film Works")[place % 3]
            return {"name": f"{name} {movie}", "country_code": ("[us]", "[de]", "[jp]")[place % 3]}
        case "cast_info" if turn < len(_CAST):
            note, role, person = _CAST[turn]
            values = {"note": note, "role_id": _key("role_type", role), "person_role_id": movie}
            # Two of four are women; the others stand behind them.
            values["person_id"] = movie if person in {0, 3} else MOVIES + movie
        case "movie_info" if turn < len(_INFO):
            kind, info, remark = _INFO[turn]
            values = {"info_type_id": _key("info_type", kind), "info": info, "note": remark}
        case "movie_info_idx" if turn < len(_RATINGS):
            kind, info = _RATINGS[turn]
            values = {"info_type_id": _key("info_type", kind), "info": info.format(place % 10)}
        case "movie_keyword" if turn < len(_KEYWORDS):
            values = {"keyword_id": KEYWORDS.index(_KEYWORDS[turn]) + 1}
        case "movie_companies" if turn < len(_COMPANIES):
            kind, remark = _COMPANIES[turn]
            company = (place + 7 * turn) % MOVIES + 1
            values = {"company_id": company, "note": remark}
            values["company_type_id"] = _key("company_type", kind)
        case "complete_cast" if turn < len(_CAST_TYPES):
            subject, status = (_key("comp_cast_type", kind) for kind in _CAST_TYPES[turn])
            values = {"subject_id": subject, "status_id": status}
        case "movie_link" if turn < len(_LINKS):
            values = {"link_type_id": _key("link_type", _LINKS[turn])}
            values["linked_movie_id"] = (place + 5) % MOVIES + 1
        case "aka_name" if turn < 2:
            return {"person_id": number}
        case "person_info" if turn < 4:
            kind = _BIOGRAPHIES[turn % 2]
            person = movie if turn < 2 else MOVIES + movie
            return {"info_type_id": _key("info_type", kind), "person_id": person}
    return {} if values is None else values | {"movie_id": movie}


def _key(table: str, word: str) -> int:
    return FIXED[table].index(word) + 1
