"""The 33 join graphs of the benchmark and the filters of their 113 variants.

The graphs and the kinds of filters are the benchmark's; the values are those of the generated data.
"""

from __future__ import annotations

from bench.job.render import Family

PRODUCTION = "ct.kind = 'production companies'"
TITLED = "k.keyword = 'character-name-in-title'"
VOICES = "ci.note IN ('(voice)', '(voice: Japanese version)', '(voice) (uncredited)')"
WRITERS = "ci.note IN ('(writer)', '(head writer)', '(story)', '(written by)')"
PRODUCERS = "ci.note IN ('(producer)', '(executive producer)')"
VIOLENT = "k.keyword IN ('murder', 'violence', 'blood', 'gore', 'death')"
HEROES = "k.keyword IN ('superhero', 'sequel', 'based-on-comic', 'fight', 'violence')"
NORTH = "mi.info IN ('Sweden', 'Norway', 'Germany', 'Denmark', 'Danish', 'German', 'USA')"
GENRES = "mi.info IN ('Horror', 'Action', 'Sci-Fi', 'Thriller', 'Crime', 'War')"
SEQUELS = "(cn.name LIKE '%Film%' OR cn.name LIKE '%Warner%')"
FOLLOWS = "lt.link LIKE '%follow%'"
ABROAD = "cn.country_code <> '[pl]'"
AMERICAN = "cn.country_code = '[us]'"
RELEASED = "mi.info IS NOT NULL"
DATED = "(mi.info LIKE 'Japan:%200%' OR mi.info LIKE 'USA:%200%')"
RATING, VOTES = "it2.info = 'rating'", "it2.info = 'votes'"
WOMEN = ("n.gender = 'f'", "rt.role = 'actress'")
COMPLETE = ("cct1.kind = 'cast'", "cct2.kind LIKE '%complete%'")


def year(low: int, high: int | None = None) -> str:
    """Return a filter on the production year."""
    between = f"t.production_year BETWEEN {low} AND {high}"
    return f"t.production_year > {low}" if high is None else between


FAMILIES = (
    Family(
        "ct it:mi_idx mc mi_idx t",
        "mc.note t.title t.production_year",
        (
            ("it.info = 'top 250 rank'",),
            ("it.info = 'bottom 10 rank'", year(2005, 2010)),
            ("it.info = 'top 250 rank'", year(2010)),
            ("it.info = 'bottom 10 rank'", year(2000)),
        ),
        (
            PRODUCTION,
            "mc.note NOT LIKE '%(as Metro-Goldwyn-Mayer Pictures)%'",
            "(mc.note LIKE '%(co-production)%' OR mc.note LIKE '%(presents)%')",
        ),
    ),
    Family(
        "cn k mc mk t",
        "t.title",
        tuple((f"cn.country_code = '[{code}]'",) for code in ("de", "nl", "sm", "us")),
        (TITLED,),
    ),
    Family(
        "k mi mk t",
        "t.title",
        ((NORTH, year(2005)), ("mi.info IN ('Bulgaria')", year(2010)), (NORTH, year(1990))),
        ("k.keyword LIKE '%sequel%'",),
    ),
    Family(
        "it:mi_idx k mi_idx mk t",
        "mi_idx.info t.title",
        (
            ("mi_idx.info > '5.0'", year(2005)),
            ("mi_idx.info > '9.0'", year(2010)),
            ("mi_idx.info > '2.0'", year(1990)),
        ),
        ("it.info = 'rating'", "k.keyword LIKE '%sequel%'"),
    ),
    Family(
        "ct it:mi mc mi t",
        "t.title",
        (
            ("mc.note LIKE '%(theatrical)%'", "mc.note LIKE '%(France)%'", NORTH, year(2005)),
            ("mc.note LIKE '%(VHS)%'", "mc.note LIKE '%(USA)%'", "mi.info IN ('USA', 'America')"),
            ("mc.note NOT LIKE '%(TV)%'", "mc.note LIKE '%(USA)%'", NORTH, year(1990)),
        ),
        (PRODUCTION,),
    ),
    Family(
        "ci k mk n t",
        "k.keyword n.name t.title",
        (
            ("k.keyword = 'marvel-cinematic-universe'", "n.name LIKE '%Downey%Robert%'"),
            (HEROES, "n.name LIKE '%Downey%Robert%'", year(2014)),
            ("k.keyword = 'marvel-cinematic-universe'", "n.name LIKE '%Downey%'", year(2014)),
            (HEROES, "n.name LIKE '%Downey%Robert%'", year(2000)),
            ("k.keyword = 'marvel-cinematic-universe'", "n.name LIKE '%Robert%'", year(2000)),
            (HEROES, year(2000)),
        ),
    ),
    Family(
        "an ci it:pi lt ml n pi t",
        "n.name t.title",
        (
            ("an.name LIKE '%a%'", "lt.link = 'features'", "pi.note = 'Volker Boehm'"),
            ("an.name LIKE '%a%'", "lt.link = 'features'", "n.name_pcode_cf LIKE 'D%'"),
            ("(an.name LIKE '%a%' OR an.name LIKE 'A%')", "lt.link IN ('references', 'features')"),
        ),
        (
            "it.info = 'mini biography'",
            "n.name_pcode_cf BETWEEN 'A' AND 'F'",
            "(n.gender = 'm' OR (n.gender = 'f' AND n.name LIKE 'B%'))",
            year(1980, 2010),
        ),
        "n.id = an.person_id, n.id = pi.person_id, ci.person_id = n.id, t.id = ci.movie_id,"
        " ml.linked_movie_id = t.id, lt.id = ml.link_type_id, it.id = pi.info_type_id,"
        " pi.person_id = an.person_id, pi.person_id = ci.person_id, an.person_id = ci.person_id,"
        " ci.movie_id = ml.linked_movie_id",
    ),
    Family(
        "an ci cn mc n rt t",
        "an.name t.title",
        (
            (
                *("ci.note = '(voice: English version)'", "cn.country_code = '[jp]'"),
                *("mc.note LIKE '%(Japan)%'", "mc.note NOT LIKE '%(USA)%'"),
                *("n.name LIKE '%Yo%'", "n.name NOT LIKE '%Yu%'", "rt.role = 'actress'"),
            ),
            (
                *("ci.note = '(voice: English version)'", "cn.country_code = '[jp]'"),
                *("(mc.note LIKE '%(2006)%' OR mc.note LIKE '%(2007)%')", year(2006, 2007)),
            ),
            (AMERICAN, "rt.role = 'writer'"),
            (AMERICAN, "rt.role = 'costume designer'"),
        ),
    ),
    Family(
        "an chn ci cn mc n rt t",
        "an.name chn.name t.title",
        (
            ("(mc.note LIKE '%(USA)%' OR mc.note LIKE '%(worldwide)%')", "n.name LIKE '%Ang%'"),
            ("mc.note LIKE '%(200%)%'", "n.name LIKE '%Angel%'", year(2007, 2010)),
            ("n.name LIKE '%An%'",),
            (),
        ),
        (VOICES, AMERICAN, *WOMEN),
    ),
    Family(
        "chn ci cn ct mc rt t",
        "chn.name t.title",
        (
            ("ci.note LIKE '%(voice)%'", "cn.country_code = '[ru]'", "rt.role = 'actor'"),
            ("ci.note LIKE '%(producer)%'", "cn.country_code = '[ru]'", "rt.role = 'actor'"),
            ("ci.note LIKE '%(producer)%'", AMERICAN, year(1990)),
        ),
    ),
    Family(
        "cn ct k lt mc mk ml t",
        "cn.name lt.link t.title",
        (
            (SEQUELS, "k.keyword = 'sequel'", FOLLOWS, "mc.note IS NULL", year(1950, 2000)),
            (SEQUELS, "k.keyword = 'sequel'", "lt.link LIKE '%follows%'", "t.title LIKE '%Money%'"),
            (
                "(cn.name LIKE '20th Century%' OR cn.name LIKE 'Twentieth Century%')",
                *("ct.kind <> 'production companies'", "mc.note IS NOT NULL", year(1950)),
            ),
            ("k.keyword IN ('sequel', 'revenge')", "mc.note IS NOT NULL", year(1950)),
        ),
        (ABROAD, "ct.kind IS NOT NULL"),
    ),
    Family(
        "cn ct it1:mi it2:mi_idx mc mi mi_idx t",
        "cn.name mi_idx.info t.title",
        (
            ("it1.info = 'genres'", RATING, "mi.info IN ('Drama', 'Horror')", "mi_idx.info > '8'"),
            ("it1.info = 'budget'", "it2.info = 'bottom 10 rank'", "t.title LIKE 'Birdemic%'"),
            ("it1.info = 'genres'", RATING, GENRES, "mi_idx.info > '5.0'", year(2000, 2010)),
        ),
        (AMERICAN, "ct.kind IS NOT NULL"),
    ),
    Family(
        "cn ct it:mi it2:mi_idx kt mc mi mi_idx t",
        "mi.info mi_idx.info t.title",
        (
            ("cn.country_code = '[de]'",),
            (AMERICAN, "t.title <> ''", "(t.title LIKE '%Champion%' OR t.title LIKE '%Loser%')"),
            (AMERICAN, "(t.title LIKE 'Champion%' OR t.title LIKE 'Loser%')"),
            (AMERICAN,),
        ),
        (PRODUCTION, "it.info = 'release dates'", RATING, "kt.kind = 'movie'"),
    ),
    Family(
        "it1:mi it2:mi_idx k kt mi mi_idx mk t",
        "mi_idx.info t.title",
        (
            ("kt.kind = 'movie'", "mi_idx.info < '8.5'", year(2010)),
            ("kt.kind = 'movie'", "mi_idx.info > '6.0'", "t.title LIKE '%murder%'", year(2010)),
            ("kt.kind IN ('movie', 'episode')", "mi_idx.info < '8.5'", year(2005)),
        ),
        ("it1.info = 'countries'", RATING, VIOLENT, NORTH),
    ),
    Family(
        "at cn ct it1:mi k mc mi mk t",
        "mi.info t.title",
        (
            ("mc.note LIKE '%(200%)%'", "mc.note LIKE '%(worldwide)%'", "mi.info LIKE 'USA:%200%'"),
            ("cn.name = 'YTV'", "mc.note LIKE '%(200%)%'", "mi.info LIKE 'USA:%200%'"),
            ("(mi.info LIKE 'USA:%199%' OR mi.info LIKE 'USA:%200%')", year(1990)),
            ("mi.note LIKE '%internet%'", year(1990)),
        ),
        (AMERICAN, "it1.info = 'release dates'"),
    ),
    Family(
        "an ci cn k mc mk n t",
        "an.name t.title",
        (
            ("t.episode_nr >= 50", "t.episode_nr < 100"),
            (),
            ("t.episode_nr < 100",),
            ("t.episode_nr >= 5", "t.episode_nr < 100"),
        ),
        (AMERICAN, TITLED),
    ),
    Family(
        "ci cn k mc mk n t",
        "n.name",
        (
            (AMERICAN, "n.name LIKE 'B%'"),
            ("n.name LIKE 'Z%'",),
            ("n.name LIKE 'X%'",),
            ("n.name LIKE '%Bert%'",),
            (AMERICAN,),
            ("n.name LIKE '%B%'",),
        ),
        (TITLED,),
    ),
    Family(
        "ci it1:mi it2:mi_idx mi mi_idx n t",
        "mi.info mi_idx.info t.title",
        (
            (PRODUCERS, "it1.info = 'budget'", VOTES, "n.gender = 'm'", "n.name LIKE '%Tim%'"),
            (
                *(WRITERS, "it1.info = 'genres'", RATING, "mi.info IN ('Horror', 'Thriller')"),
                *("mi.note IS NULL", "mi_idx.info > '8.0'", "n.gender = 'f'", year(2008, 2014)),
            ),
            (WRITERS, "it1.info = 'genres'", VOTES, GENRES, "n.gender = 'm'"),
        ),
    ),
    Family(
        "an chn ci cn it:mi mc mi n rt t",
        "n.name t.title",
        (
            ("mc.note IS NOT NULL", DATED, "n.name LIKE '%Ang%'", year(2005, 2009)),
            ("ci.note = '(voice)'", "mc.note LIKE '%(200%)%'", DATED, "t.title LIKE '%Panda%'"),
            (DATED, "n.name LIKE '%An%'", year(2000)),
            (year(2000),),
        ),
        (VOICES, AMERICAN, "it.info = 'release dates'", RELEASED, *WOMEN),
    ),
    Family(
        "cct1:subject cct2:status cc chn ci k kt mk n t",
        "t.title",
        (
            (
                *("chn.name NOT LIKE '%Sherlock%'", "k.keyword IN ('superhero', 'sequel')"),
                *("(chn.name LIKE '%Tony%Stark%' OR chn.name LIKE '%Iron%Man%')", year(1950)),
            ),
            (
                *("chn.name NOT LIKE '%Sherlock%'", HEROES, "n.name LIKE '%Downey%Robert%'"),
                *("(chn.name LIKE '%Tony%Stark%' OR chn.name LIKE '%Iron%Man%')", year(2000)),
            ),
            ("(chn.name LIKE '%man%' OR chn.name LIKE '%Man%')", HEROES, year(2000)),
        ),
        (*COMPLETE, "kt.kind = 'movie'"),
    ),
    Family(
        "cn ct k lt mc mi mk ml t",
        "cn.name lt.link t.title",
        (
            (NORTH, year(1950, 2000)),
            ("mi.info IN ('Germany', 'German')", year(2000, 2010)),
            ("mi.info IN ('Sweden', 'Norway', 'USA', 'English')", year(1950, 2010)),
        ),
        (ABROAD, SEQUELS, PRODUCTION, "k.keyword = 'sequel'", FOLLOWS, "mc.note IS NULL"),
    ),
    Family(
        "cn ct it1:mi it2:mi_idx k kt mc mi mi_idx mk t",
        "cn.name mi_idx.info t.title",
        (
            ("mc.note NOT LIKE '%(USA)%'", "mc.note LIKE '%(200%)%'", "mi_idx.info < '7.0'"),
            ("mc.note NOT LIKE '%(USA)%'", "mc.note LIKE '%(200%)%'", year(2009)),
            ("mc.note NOT LIKE '%(USA)%'", "mi_idx.info < '8.5'", year(2005)),
            ("mi_idx.info < '8.5'", year(2005)),
        ),
        (
            *("cn.country_code <> '[us]'", "it1.info = 'countries'", RATING, VIOLENT, NORTH),
            "kt.kind IN ('movie', 'episode')",
        ),
    ),
    Family(
        "cct1:status cc cn ct it1:mi k kt mc mi mk t",
        "kt.kind t.title",
        (
            ("kt.kind IN ('movie')", DATED, year(2000)),
            ("k.keyword IN ('nerd', 'loner', 'alienation', 'dignity')", DATED, year(2000)),
            ("kt.kind IN ('movie', 'tv movie', 'video movie', 'video game')", year(1990)),
        ),
        (
            *("cct1.kind = 'complete+verified'", AMERICAN, "it1.info = 'release dates'"),
            *("mi.note LIKE '%internet%'", RELEASED),
        ),
    ),
    Family(
        "an chn ci cn it:mi k mc mi mk n rt t",
        "chn.name n.name t.title",
        (
            ("k.keyword IN ('hero', 'martial-arts', 'hand-to-hand-combat')", year(2005)),
            ("cn.name = 'DreamWorks Animation'", "t.title LIKE 'Kung Fu Panda%'", year(2005)),
        ),
        (
            *(VOICES, AMERICAN, "it.info = 'release dates'", RELEASED, DATED),
            *("n.name LIKE '%An%'", *WOMEN),
        ),
    ),
    Family(
        "ci it1:mi it2:mi_idx k mi mi_idx mk n t",
        "mi.info mi_idx.info n.name t.title",
        (
            ("mi.info = 'Horror'",),
            ("mi.info = 'Horror'", "t.title LIKE 'Vampire%'", year(2005)),
            (GENRES,),
        ),
        (WRITERS, "it1.info = 'genres'", VOTES, VIOLENT, "n.gender = 'm'"),
    ),
    Family(
        "cct1:subject cct2:status cc chn ci it2:mi_idx k kt mi_idx mk n t",
        "chn.name mi_idx.info n.name t.title",
        (
            ("mi_idx.info > '7.0'", year(2000)),
            ("mi_idx.info > '8.0'", year(2005)),
            (year(2000),),
        ),
        (
            *(*COMPLETE, "chn.name IS NOT NULL", RATING, HEROES, "kt.kind = 'movie'"),
            "(chn.name LIKE '%man%' OR chn.name LIKE '%Man%')",
        ),
    ),
    Family(
        "cct1:subject cct2:status cc cn ct k lt mc mi mk ml t",
        "cn.name lt.link t.title",
        (
            ("cct1.kind IN ('cast', 'crew')", "cct2.kind = 'complete'", year(1950, 2000)),
            ("cct1.kind IN ('cast', 'crew')", "cct2.kind = 'complete'", "t.production_year = 1998"),
            ("cct1.kind = 'cast'", "cct2.kind LIKE 'complete%'", year(1950, 2010)),
        ),
        (ABROAD, SEQUELS, PRODUCTION, "k.keyword = 'sequel'", FOLLOWS, "mc.note IS NULL", NORTH),
    ),
    Family(
        "cct1:subject cct2:status cc cn ct it1:mi it2:mi_idx k kt mc mi mi_idx mk t",
        "cn.name mi_idx.info t.title",
        (
            ("cct1.kind = 'crew'", "cct2.kind <> 'complete+verified'", "mi_idx.info < '8.5'"),
            ("cct1.kind = 'crew'", "cct2.kind <> 'complete+verified'", "mi_idx.info > '6.5'"),
            ("cct1.kind = 'cast'", "cct2.kind = 'complete'", "mi_idx.info < '8.5'"),
        ),
        (
            *("cn.country_code <> '[us]'", "it1.info = 'countries'", RATING, VIOLENT, NORTH),
            *("kt.kind IN ('movie', 'episode')", "mc.note NOT LIKE '%(USA)%'", year(2000)),
        ),
    ),
    Family(
        "an cct1:subject cct2:status cc chn ci cn it:mi it3:pi k mc mi mk n pi rt t",
        "chn.name n.name t.title",
        (
            ("chn.name = 'Queen'", "it3.info = 'trivia'", "t.title = 'Shrek 2'"),
            ("chn.name = 'Queen'", "it3.info = 'height'", year(2000, 2005)),
            ("it3.info = 'trivia'", year(2000, 2010)),
        ),
        (
            *("cct1.kind = 'cast'", "cct2.kind LIKE 'complete%'", VOICES, AMERICAN),
            *("it.info = 'release dates'", "k.keyword = 'computer-animation'", DATED),
            *("n.name LIKE '%An%'", *WOMEN),
        ),
    ),
    Family(
        "cct1:subject cct2:status cc ci it1:mi it2:mi_idx k mi mi_idx mk n t",
        "mi.info mi_idx.info n.name t.title",
        (
            ("mi.info IN ('Horror', 'Thriller')", year(2000)),
            (
                "mi.info IN ('Horror', 'Thriller')",
                "(t.title LIKE '%Freddy%' OR t.title LIKE '%Jason%')",
            ),
            (GENRES,),
        ),
        (
            *("cct1.kind IN ('cast', 'crew')", "cct2.kind LIKE 'complete%'", WRITERS),
            *("it1.info = 'genres'", VOTES, VIOLENT, "n.gender = 'm'"),
        ),
    ),
    Family(
        "ci cn it1:mi it2:mi_idx k mc mi mi_idx mk n t",
        "mi.info mi_idx.info n.name t.title",
        (
            ("mi.info IN ('Horror', 'Thriller')", "n.gender = 'm'"),
            ("mc.note LIKE '%(VHS)%'", "n.gender = 'm'", year(2000)),
            (GENRES,),
        ),
        (WRITERS, "cn.name LIKE 'Lionsgate%'", "it1.info = 'genres'", VOTES, VIOLENT),
    ),
    Family(
        "k lt mk ml t1 t2",
        "lt.link t1.title t2.title",
        (("k.keyword = '10,000-mile-club'",), (TITLED,)),
        (),
        "mk.keyword_id = k.id, t1.id = mk.movie_id, ml.movie_id = t1.id,"
        " ml.linked_movie_id = t2.id, lt.id = ml.link_type_id, mk.movie_id = t1.id",
    ),
    Family(
        "cn1 cn2 it1 it2 kt1 kt2 lt mc1 mc2 mi_idx1 mi_idx2 ml t1 t2",
        "cn1.name cn2.name mi_idx1.info mi_idx2.info t1.title t2.title",
        (
            ("cn1.country_code = '[us]'", "lt.link IN ('sequel', 'follows', 'followed by')"),
            ("cn1.country_code = '[nl]'", "lt.link LIKE '%follow%'"),
            ("cn1.country_code <> '[us]'", "lt.link IN ('sequel', 'follows', 'followed by')"),
        ),
        (
            *("it1.info = 'rating'", "it2.info = 'rating'", "mi_idx2.info < '6.5'"),
            *(
                "kt1.kind IN ('tv series', 'episode', 'movie')",
                "kt2.kind IN ('tv series', 'movie')",
            ),
            "t2.production_year BETWEEN 1990 AND 2010",
        ),
        "lt.id = ml.link_type_id, t1.id = ml.movie_id, t2.id = ml.linked_movie_id,"
        " it1.id = mi_idx1.info_type_id, t1.id = mi_idx1.movie_id, kt1.id = t1.kind_id,"
        " cn1.id = mc1.company_id, t1.id = mc1.movie_id, ml.movie_id = mi_idx1.movie_id,"
        " ml.movie_id = mc1.movie_id, mi_idx1.movie_id = mc1.movie_id,"
        " it2.id = mi_idx2.info_type_id, t2.id = mi_idx2.movie_id, kt2.id = t2.kind_id,"
        " cn2.id = mc2.company_id, t2.id = mc2.movie_id, ml.linked_movie_id = mi_idx2.movie_id,"
        " ml.linked_movie_id = mc2.movie_id, mi_idx2.movie_id = mc2.movie_id",
    ),
)
