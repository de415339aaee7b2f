"""The 21 tables of the Join Order Benchmark: the Internet Movie Database, as it was published."""

from __future__ import annotations

MARKS = "phonetic_code varchar(5), md5sum varchar(32)"
CODES = "name_pcode_cf varchar(5), name_pcode_nf varchar(5), surname_pcode varchar(5)"

TABLES = {
    "comp_cast_type": "kind varchar(32) NOT NULL",
    "company_type": "kind varchar(32) NOT NULL",
    "info_type": "info varchar(32) NOT NULL",
    "kind_type": "kind varchar(15) NOT NULL",
    "link_type": "link varchar(32) NOT NULL",
    "role_type": "role varchar(32) NOT NULL",
    "keyword": "keyword text NOT NULL, phonetic_code varchar(5)",
    "company_name": "name text NOT NULL, country_code varchar(255), imdb_id integer,"
    " name_pcode_nf varchar(5), name_pcode_sf varchar(5), md5sum varchar(32)",
    "char_name": "name text NOT NULL, imdb_index varchar(12), imdb_id integer,"
    " name_pcode_nf varchar(5), surname_pcode varchar(5), md5sum varchar(32)",
    "name": "name text NOT NULL, imdb_index varchar(12), imdb_id integer, gender varchar(1),"
    f" {CODES}, md5sum varchar(32)",
    "title": "title text NOT NULL, imdb_index varchar(12), kind_id integer NOT NULL,"
    f" production_year integer, imdb_id integer, {MARKS}, episode_of_id integer,"
    " season_nr integer, episode_nr integer, series_years varchar(49)",
    "aka_name": "person_id integer NOT NULL, name text NOT NULL, imdb_index varchar(12),"
    f" {CODES}, md5sum varchar(32)",
    "aka_title": "movie_id integer NOT NULL, title text NOT NULL, imdb_index varchar(12),"
    f" kind_id integer NOT NULL, production_year integer, {MARKS}, episode_of_id integer,"
    " season_nr integer, episode_nr integer, note text",
    "cast_info": "person_id integer NOT NULL, movie_id integer NOT NULL, person_role_id integer,"
    " note text, nr_order integer, role_id integer NOT NULL",
    "complete_cast": "movie_id integer, subject_id integer NOT NULL, status_id integer NOT NULL",
    "movie_companies": "movie_id integer NOT NULL, company_id integer NOT NULL,"
    " company_type_id integer NOT NULL, note text",
    "movie_info": "movie_id integer NOT NULL, info_type_id integer NOT NULL, info text NOT NULL,"
    " note text",
    "movie_info_idx": "movie_id integer NOT NULL, info_type_id integer NOT NULL,"
    " info text NOT NULL, note text",
    "movie_keyword": "movie_id integer NOT NULL, keyword_id integer NOT NULL",
    "movie_link": "movie_id integer NOT NULL, linked_movie_id integer NOT NULL,"
    " link_type_id integer NOT NULL",
    "person_info": "person_id integer NOT NULL, info_type_id integer NOT NULL,"
    " info text NOT NULL, note text",
}

# What a column refers to, in whatever table it is.
REFERENCES = {
    "person_id": "name",
    "movie_id": "title",
    "linked_movie_id": "title",
    "person_role_id": "char_name",
    "role_id": "role_type",
    "company_id": "company_name",
    "company_type_id": "company_type",
    "info_type_id": "info_type",
    "keyword_id": "keyword",
    "link_type_id": "link_type",
    "kind_id": "kind_type",
    "subject_id": "comp_cast_type",
    "status_id": "comp_cast_type",
}

# What a name of the queries, without its number, stands for.
ALIASES = {
    "an": "aka_name",
    "at": "aka_title",
    "cc": "complete_cast",
    "cct": "comp_cast_type",
    "chn": "char_name",
    "ci": "cast_info",
    "cn": "company_name",
    "ct": "company_type",
    "it": "info_type",
    "k": "keyword",
    "kt": "kind_type",
    "lt": "link_type",
    "mc": "movie_companies",
    "mi": "movie_info",
    "mi_idx": "movie_info_idx",
    "mk": "movie_keyword",
    "ml": "movie_link",
    "n": "name",
    "pi": "person_info",
    "rt": "role_type",
    "t": "title",
}


def columns(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, with the key `id` that each has."""
    return ("id", *(column.split()[0] for column in TABLES[table].split(", ")))
