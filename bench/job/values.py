"""Values for the generated tables, such that the filters of the queries select some rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

# Small tables whose rows are all known.
FIXED: Mapping[str, tuple[str, ...]] = {
    "comp_cast_type": ("cast", "crew", "complete", "complete+verified"),
    "company_type": (
        *("production companies", "distributors", "special effects companies"),
        "miscellaneous companies",
    ),
    "info_type": (
        *("top 250 rank", "bottom 10 rank", "rating", "votes", "genres", "countries"),
        *("release dates", "budget", "mini biography", "trivia", "height", "languages"),
    ),
    "kind_type": ("movie", "tv series", "tv movie", "video movie", "video game", "episode"),
    "link_type": ("sequel", "follows", "followed by", "features", "references", "remake of"),
    "role_type": ("actor", "actress", "writer", "producer", "costume designer"),
}
KEYWORDS = (
    *("character-name-in-title", "sequel", "marvel-cinematic-universe", "superhero", "murder"),
    *("based-on-comic", "fight", "violence", "blood", "gore", "death", "revenge", "hero"),
    *("martial-arts", "hand-to-hand-combat", "computer-animation", "nerd", "loner"),
    *("alienation", "dignity", "10,000-mile-club", "sequel-baiting"),
)
COMPANIES = (
    *("Warner Film", "Film Works", "20th Century Fox", "Twentieth Century", "YTV", "Lionsgate"),
    *("DreamWorks Animation", "Toho", "Studio"),
)
COUNTRIES = ("[us]", "[us]", "[us]", "[de]", "[nl]", "[sm]", "[jp]", "[ru]", "[pl]", "[gb]", None)
TITLES = (
    *("Champion", "Loser", "Money", "Shrek 2", "Kung Fu Panda", "Birdemic", "Vampire", "Freddy"),
    *("Jason", "A murder", "Dragon"),
)
NAMES = (
    *("Downey, Robert", "Yoko, Ann", "Angel, Anna", "Bert, Bo", "Berg, Tim", "Xu, An", "Zola, Tim"),
    *("Ang, Lee", "Yoshida, Ana", "Cook, Robert", "Dean, Angela"),
)
CHARACTERS = ("Queen", "Tony Stark", "Iron Man", "Spider-Man", "Batman", "Himself", "Sherlock")
COMPANY_NOTES = (
    *("(co-production)", "(presents)", "(as Metro-Goldwyn-Mayer Pictures) (presents)"),
    *("(theatrical) (France)", "(worldwide) (2006)", "(USA) (VHS) 1994", "(Japan) (2007)"),
    *("(2008) (worldwide) (TV)", "(USA) (2009)", None, None),
)
CAST_NOTES = (
    *("(voice)", "(voice: English version)", "(voice: Japanese version)", "(voice) (uncredited)"),
    *("(producer)", "(executive producer)", "(writer)", "(head writer)", "(story)"),
    *("(written by)", "(uncredited)", None),
)
INFO: Mapping[str, tuple[str, ...]] = {
    "genres": ("Horror", "Drama", "Action", "Sci-Fi", "Thriller", "Crime", "War", "Comedy"),
    "countries": ("Sweden", "Norway", "Germany", "Denmark", "USA", "Bulgaria", "France"),
    "languages": ("German", "Danish", "English"),
    "release dates": ("USA:May 2008", "Japan:Jun 2007", "USA:1 May 1995", "USA:2003", "UK:2004"),
    "budget": ("$1,000", "$20,000"),
}


def one_of(random: Random, values: tuple[Any, ...]) -> Any:
    """Return one of some values, the first ones more often."""
    return values[int(len(values) * random.random() ** 1.5)]


def numbered(random: Random, values: tuple[str, ...]) -> str:
    """Return one of some words, mostly with a number behind it."""
    word = one_of(random, values)
    return word if random.random() < 0.2 else f"{word} {random.randrange(1000)}"


def _title(random: Random) -> dict[str, Any]:
    return {
        "title": numbered(random, TITLES),
        "production_year": one_of(random, (*range(2014, 1970, -1), None)),
        "episode_nr": random.choice((None, random.randrange(120))),
        "season_nr": random.choice((None, random.randrange(9))),
    }


def _name(random: Random) -> dict[str, Any]:
    return {
        "name": numbered(random, NAMES),
        "gender": one_of(random, ("m", "f", "f", "m", None)),
        "name_pcode_cf": f"{random.choice('ABCDEFG')}{random.randrange(1000)}",
    }


def _movie_info(random: Random) -> dict[str, Any]:
    kind = one_of(random, ("release dates", "genres", "countries", "languages", "budget"))
    note = random.choice((None, None, "internet", "(Theatrical)"))
    info = one_of(random, INFO[kind])
    return {"info_type_id": FIXED["info_type"].index(kind) + 1, "info": info, "note": note}


def _movie_info_idx(random: Random) -> dict[str, Any]:
    kind = one_of(random, ("rating", "votes", "top 250 rank", "bottom 10 rank"))
    info = str(random.randrange(5000))
    if kind == "rating":
        info = f"{random.randrange(10)}.{random.randrange(10)}"
    return {"info_type_id": FIXED["info_type"].index(kind) + 1, "info": info}


def _person_info(random: Random) -> dict[str, Any]:
    kind = one_of(random, ("mini biography", "trivia", "height"))
    return {
        "info_type_id": FIXED["info_type"].index(kind) + 1,
        "info": f"{kind} {random.randrange(1000)}",
        "note": random.choice(("Volker Boehm", None)),
    }


# What the columns of a row get that refer to nothing; others are NULL.
VALUES: Mapping[str, Callable[[Random], dict[str, Any]]] = {
    "keyword": lambda random: {"keyword": numbered(random, KEYWORDS)},
    "company_name": lambda random: {
        "name": numbered(random, COMPANIES),
        "country_code": one_of(random, COUNTRIES),
    },
    "char_name": lambda random: {"name": numbered(random, CHARACTERS)},
    "name": _name,
    "title": _title,
    "aka_name": lambda random: {"name": numbered(random, NAMES)},
    "aka_title": _title,
    "cast_info": lambda random: {
        "note": one_of(random, CAST_NOTES),
        "nr_order": random.choice((None, random.randrange(50))),
    },
    "complete_cast": lambda random: {
        "subject_id": random.choice((1, 1, 2)),
        "status_id": random.choice((3, 4)),
    },
    "movie_companies": lambda random: {"note": one_of(random, COMPANY_NOTES)},
    "movie_info": _movie_info,
    "movie_info_idx": _movie_info_idx,
    "movie_keyword": lambda random: {},
    "movie_link": lambda random: {},
    "person_info": _person_info,
}
