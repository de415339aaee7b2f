"""Values that the queries ask for, in data of a small scale.

A small scale has one store, one warehouse and one web site, and its few items and customers hardly
ever have the values that the queries name: a third of the results would be empty and stay so.
Here the smallest dimensions get more rows, some orders come on the days and from the customers that
the queries look at, and attributes are drawn from the values that they name. Which row gets which
value follows from its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from bench.tpcds.schema import columns

# How many rows the smallest dimensions get, and how these differ from the first: by {n}.
STORES = ("ought", "able", "pri", "ese", "anti", "cally")
COUNTIES = ("Williamson County", "Orange County", "Bronx County", "Franklin Parish")
CITIES = ("Fairview", "Midway", "Edgewood", "Oak Grove", "Five Points")
STATES = (
    *(
        "GA",
        "IL",
        "GA",
        "IL",
        "TN",
        "GA",
        "IL",
        "OH",
        "TX",
        "OH",
        "KY",
        "CA",
        "WA",
        "CO",
        "IN",
        "NJ",
        "LA",
        "IA",
        "AR",
        "MS",
        "ND",
    ),
    *("OK", "NM", "VA", "OR", "MN", "WI", "CT"),
)
ZIPS = ("24128", "76232", "65084", "35458", "35576", "85669", "88274")
ADDRESS_COUNTIES = (
    *("Rush County", "Toole County", "Jefferson County", "Dona Ana County", "La Porte County"),
    *COUNTIES,
    *(f"County {number}" for number in range(8)),
)
COLORS = (
    *(
        "peach",
        "peach",
        "purple",
        "burlywood",
        "indian",
        "spring",
        "floral",
        "medium",
        "slate",
        "blanched",
    ),
    *("burnished", "powder", "brown", "light", "snow", "cyan", "orange", "forest", "deep"),
)
MANUFACTURERS = (128, 350, 977, 738, 750, 778, 129, 270, 821, 423, 677, 940, 694, 808)
MANAGERS = (1, 8, 28, 40)
CLASSES = (
    *(("Women", "maternity"), ("Women", "dresses"), ("Women", "fragrances"), ("Men", "pants")),
    *(("Men", "shirts"), ("Men", "accessories"), ("Music", "classical"), ("Books", "computers")),
    *(("Books", "self-help"), ("Books", "reference"), ("Children", "infants")),
    *(("Electronics", "portable"), ("Electronics", "stereo"), ("Electronics", "personal")),
    *(("Sports", "football"), ("Home", "bedding"), ("Jewelry", "birdal"), ("Shoes", "mens")),
)
BRANDS = (
    *("scholaramalgamalg #14", "scholaramalgamalg #7", "exportiunivamalg #9", "importoamalg #1"),
    *("scholaramalgamalg #9", "amalgimporto #1", "edu packscholar #1", "exportiimporto #1"),
)
# What goes together in one query: category, color, units, size.
GOODS = (
    ("Women", "powder", "Ounce", "medium"),
    ("Women", "brown", "Bunch", "small"),
    ("Men", "floral", "Dozen", "petite"),
    ("Men", "light", "Box", "extra large"),
    ("Women", "snow", "Gross", "medium"),
    ("Men", "forest", "Lb", "medium"),
)
PEOPLE = (
    *(("M", "Advanced Degree"), ("S", "College"), ("W", "2 yr Degree"), ("M", "Unknown")),
    *(("W", "Advanced Degree"), ("D", "2 yr Degree"), ("M", "4 yr Degree")),
)
# Months in which the queries look, as year and months.
MONTHS = (
    *((1998, 4), (1998, 5), (1998, 9), (1998, 11), (1998, 12), (1999, 2), (1999, 3), (1999, 9)),
    *((1999, 11), (1999, 12), (2000, 1), (2000, 2), (2000, 3), (2000, 4), (2000, 5), (2000, 6)),
    *((2000, 8), (2000, 9), (2000, 11), (2001, 1), (2001, 2), (2001, 4), (2001, 5), (2001, 8)),
    *((2001, 12), (2002, 1), (2002, 2), (2002, 3), (2002, 11)),
)
# Days whose week is compared across the three channels.
DAYS = ("2000-01-03", "2000-06-30", "2000-09-27", "2000-11-17")
# Where each channel has a month of many orders.
BUSY = {"ss": "1999-01-01", "cs": "2002-02-01", "ws": "1999-02-01"}
# The customers to whom most orders go, and how many other keys there are to draw from.
REGULARS = 120

SALES = {"ss": "store_sales", "cs": "catalog_sales", "ws": "web_sales"}

Sql = psycopg.Connection[Any]


def spread(sql: Sql) -> None:
    """Bring the values of a loaded database near those that the queries name."""
    for text in (*_dimensions(), *_attributes(), *_facts(), *_matches()):
        sql.execute(text.encode())


def _hash(*parts: str) -> str:
    """Return an expression: a number from 0 to 65535 that follows from the parts."""
    text = " || ' ' || ".join(parts)
    return f"(hashtextextended({text}, 0) & 65535)::int"


def _pick(values: Sequence[Any], number: str) -> str:
    """Return an expression: one of some values, by a number."""
    shown = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in values)
    return f"(ARRAY[{shown}])[1 + ({number}) % {len(values)}]"


def _copies(table: str, count: int, values: dict[str, str]) -> str:
    """Return an INSERT of rows 2 to `count`, like the first but for some values, which know `n`."""
    names = list(columns(table))
    shown = {name: values.get(name, f"first.{name}") for name in names}
    key = names[0]
    shown[key] = "n"
    return (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(shown.values())}"
        f" FROM (SELECT * FROM {table} ORDER BY {key} LIMIT 1) AS first,"
        f" generate_series((SELECT max({key}) + 1 FROM {table}), {count}) AS n"
    )


def _dimensions() -> Iterator[str]:
    yield _copies(
        "store",
        12,
        {
            "s_store_id": "'STORE' || n",
            "s_store_name": _pick(STORES, "n"),
            "s_city": _pick(CITIES, "n"),
            "s_county": _pick(COUNTIES, "n"),
            "s_state": _pick(("TN", "GA", "OH"), "n / 4"),
            "s_zip": _pick(ZIPS, "n"),
            "s_market_id": _pick((8, 5, 8, 2), "n"),
            "s_number_employees": "200 + n * 9",
            "s_company_name": _pick(("Unknown", "ought"), "n"),
        },
    )
    yield _copies(
        "call_center",
        6,
        {
            "cc_call_center_id": "'CENTER' || n",
            "cc_name": "'center ' || n",
            "cc_county": _pick(COUNTIES, "n / 2"),
        },
    )
    yield _copies(
        "web_site",
        6,
        {
            "web_site_id": "'SITE' || n",
            "web_name": "'site ' || n",
            "web_company_name": _pick(("pri", "able", "ought"), "n"),
        },
    )
    page = {"wp_web_page_id": "'PAGE' || n", "wp_char_count": "4900 + n * 40"}
    yield _copies("web_page", 12, page)
    name = {"w_warehouse_id": "'HOUSE' || n", "w_warehouse_name": "'Warehouse number ' || n"}
    yield _copies("warehouse", 5, name)
    yield _copies(
        "promotion",
        30,
        {
            "p_promo_id": "'PROMO' || n",
            "p_promo_name": "'promotion ' || n",
            "p_channel_dmail": _pick(("Y", "N"), "n"),
            "p_channel_email": _pick(("N", "N", "Y"), "n"),
            "p_channel_tv": _pick(("N", "Y", "N"), "n"),
            "p_channel_event": _pick(("N", "Y"), "n / 3"),
        },
    )
    reason = {"r_reason_id": "'REASON' || n", "r_reason_desc": "'reason ' || n"}
    yield _copies("reason", 35, reason)


def _attributes() -> Iterator[str]:
    place = _hash("ca_address_sk::text")
    yield (
        f"UPDATE customer_address SET ca_state = {_pick(STATES, place)},"
        f" ca_county = {_pick(ADDRESS_COUNTIES, f'{place} / 3')},"
        f" ca_city = {_pick(CITIES, f'{place} / 5')}, ca_country = 'United States',"
        f" ca_gmt_offset = {_pick((-5, -7, -6, -5), f'{place} / 7')}"
    )
    yield f"UPDATE customer_address SET ca_zip = {_pick(ZIPS, place)} WHERE {place} % 3 = 0"
    who = _hash("c_customer_sk::text")
    days = "(SELECT array_agg(d_date_sk ORDER BY d_date_sk) FROM date_dim WHERE d_year = 1998)"
    yield (
        f"UPDATE customer SET c_preferred_cust_flag = {_pick(('Y', 'N', 'Y'), who)},"
        f" c_birth_month = {_pick((1, 6, 8, 9, 12, 2, 4), who)},"
        f" c_first_sales_date_sk = {days}[1 + {who} % 365],"
        f" c_first_shipto_date_sk = {days}[1 + {who} % 365],"
        f" c_current_cdemo_sk = {_people(who)},"
        f" c_current_hdemo_sk = {_households(who)}"
    )
    good = "i_item_sk"
    category, kind = ([pair[place] for pair in CLASSES] for place in range(2))
    yield (
        f"UPDATE item SET i_category = {_pick(category, good)}, i_class = {_pick(kind, good)},"
        f" i_color = {_pick(COLORS, f'{good} / 3')}, i_manager_id = {_pick(MANAGERS, good)},"
        f" i_manufact_id = {_pick(MANUFACTURERS, f'{good} / 2')},"
        f" i_brand = CASE WHEN {good} % 2 = 0 THEN {_pick(BRANDS, f'{good} / 2')} ELSE i_brand END"
    )
    yield (
        "UPDATE item SET i_current_price = 65 + i_item_sk % 10 WHERE i_item_sk % 2 = 0"
        " OR i_color IN ('purple', 'floral', 'medium')"
    )
    yield "UPDATE item SET i_current_price = 1.20 WHERE i_item_sk % 9 = 0"
    shown = [[goods[place] for goods in GOODS] for place in range(4)]
    category, color, units, size = (_pick(values, "i_item_sk / 8") for values in shown)
    yield (
        f"UPDATE item SET i_category = {category}, i_color = {color}, i_units = {units},"
        f" i_size = {size}, i_manufact_id = 738 + i_item_sk % 40,"
        f" i_manufact = 'maker ' || i_item_sk / 8 % 8 WHERE i_item_sk % 8 = 1"
    )


def _people(number: str) -> str:
    pairs = ", ".join(f"('{status}', '{education}')" for status, education in PEOPLE)
    return _key_where(
        "customer_demographics",
        "cd_demo_sk",
        f"(cd_marital_status, cd_education_status) IN ({pairs})",
        number,
    )


def _households(number: str) -> str:
    where = "hd_vehicle_count BETWEEN 1 AND 3 OR hd_buy_potential IN ('Unknown', '>10000')"
    return _key_where("household_demographics", "hd_demo_sk", where, number)


def _key_where(table: str, key: str, where: str, number: str) -> str:
    """Return an expression: the key of one of some rows, by a number."""
    keys = f"(SELECT array_agg({key} ORDER BY {key}) FROM {table} WHERE {where})"
    return f"{keys}[1 + ({number} * 7919) % array_length({keys}, 1)]"


def _day(date: str) -> str:
    return f"(SELECT d_date_sk FROM date_dim WHERE d_date = '{date}')"


def _days() -> str:
    months = ", ".join(f"({year}, {month})" for year, month in MONTHS)
    days = ", ".join(f"'{day}'" for day in DAYS)
    return (
        f"(SELECT array_agg(d_date_sk ORDER BY d_date_sk) FROM date_dim WHERE (d_year, d_moy) IN"
        f" ({months}) OR d_week_seq IN (SELECT d_week_seq FROM date_dim WHERE d_date IN ({days})))"
    )


def _facts() -> Iterator[str]:
    yield f"CREATE TEMP TABLE days AS SELECT {_days()} AS days"
    for table, order in (("ss", "ticket"), ("cs", "order"), ("ws", "order")):
        yield _sales(table, _hash(f"{table}_{order}_number::text"))
        price, sold = f"{table}_ext_sales_price", f"{table}_sold_date_sk"
        weeks = f"SELECT d_week_seq FROM date_dim WHERE d_date = '{DAYS[0]}'"
        days = f"SELECT d_date_sk FROM date_dim WHERE d_week_seq IN ({weeks})"
        yield f"UPDATE {SALES[table]} SET {price} = 100 WHERE {sold} IN ({days})"
    number = _hash("r.item::text", "r.number::text")
    compared = _pick(range(3), f"{number} / 8")
    for text in RETURNS:
        day = " ".join(f"WHEN {i} THEN {_day(day)}" for i, day in enumerate(DAYS[1:]))
        yield text.format(
            hash=number,
            day=f"CASE {compared} {day} END",
            november=f"{_day('1998-11-01')} + {number} / 8 % 28",
        )
    yield "DROP TABLE days"
    many = _hash("inv_date_sk::text", "inv_item_sk::text")
    yield (
        f"UPDATE inventory SET inv_warehouse_sk = 1 + inv_item_sk % 5, inv_quantity_on_hand ="
        f" CASE WHEN {many} / 8 % 6 = 0 THEN 450 + {many} % 50 ELSE {many} % 40 END"
        " WHERE inv_item_sk % 3 <> 0"
    )


def _matches() -> Iterator[str]:
    """Rows that have many of the values at once which some queries ask for."""
    person = "(cd_marital_status, cd_education_status) = ('M', 'Advanced Degree')"
    people = _key_where("customer_demographics", "cd_demo_sk", person, "0")
    household = _key_where("household_demographics", "hd_demo_sk", "hd_dep_count = 3", "0")
    where = "(SELECT ca_address_sk FROM customer_address WHERE ca_state = '{}' ORDER BY 1 LIMIT 1)"
    sold = "SELECT d_date_sk FROM date_dim WHERE d_year = {}"
    yield (
        f"UPDATE store_sales SET ss_cdemo_sk = {people}, ss_hdemo_sk = {household},"
        f" ss_sales_price = 120, ss_net_profit = 160, ss_addr_sk = {where.format('TX')}"
        f" WHERE ss_sold_date_sk IN ({sold.format(2001)}) AND ss_ticket_number % 30 = 0"
    )
    yield (
        "UPDATE web_sales SET ws_sales_price = 120, ws_net_profit = 160"
        f" WHERE ws_sold_date_sk IN ({sold.format(2000)}) AND ws_order_number % 3 = 0"
    )
    yield (
        f"UPDATE web_returns SET wr_refunded_cdemo_sk = {people},"
        f" wr_returning_cdemo_sk = {people}, wr_refunded_addr_sk = {where.format('OH')}"
        " WHERE wr_order_number % 3 = 0"
    )
    # Customers who live where a store is.
    yield (
        "UPDATE customer_address SET ca_county = s_county, ca_state = s_state FROM store"
        " WHERE s_store_sk = 3 AND ca_address_sk <= 20"
    )
    yield "UPDATE customer SET c_current_addr_sk = c_customer_sk / 2 + 1 WHERE c_customer_sk < 40"


def _sales(prefix: str, order: str) -> str:
    """Return an UPDATE of one sales table: days, customers and dimensions."""
    line = _hash(f"{prefix}_item_sk::text", order)
    regular = f"{order} % 4 <> 0"
    sold = (
        f"CASE WHEN {order} % 40 = 0 THEN {_day('2000-02-14')}"
        f" WHEN {order} % 40 = 1 THEN {_day(DAYS[0])}"
        f" WHEN {order} % 10 = 3 THEN {_day(BUSY[prefix])} + {order} / 10 % 28"
        f" WHEN {order} % 3 <> 0 THEN days[1 + {order} % array_length(days, 1)]"
    )
    sets = {f"{prefix}_sold_date_sk": f"{sold} ELSE {prefix}_sold_date_sk END"}
    who = [""] if prefix == "ss" else ["bill_", "ship_"]
    for place, role in enumerate(who):
        drawn = f"1 + {order} / 4 % {REGULARS}"
        column = f"{prefix}_{role}customer_sk"
        sets[column] = f"CASE WHEN {regular} THEN {drawn} + {place} ELSE {column} END"
        for name, key in (("cdemo", _people(line)), ("hdemo", _households(line))):
            column = f"{prefix}_{role}{name}_sk"
            some = f"{line} % 3 = 0 AND {order} % 2 = 0"
            sets[column] = f"CASE WHEN {some} THEN {key} ELSE {column} END"
    if prefix == "ss":
        where = (
            "hd_buy_potential IN ('>10000', 'Unknown') AND hd_vehicle_count > 0"
            " AND hd_dep_count > 2 * hd_vehicle_count"
        )
        large = _key_where("household_demographics", "hd_demo_sk", where, order)
        drawn = sets["ss_hdemo_sk"]
        sets["ss_hdemo_sk"] = f"CASE WHEN {order} % 4 = 1 THEN {large} ELSE {drawn} END"
    dimensions = {
        "ss": {"store": (order, 12)},
        "cs": {"call_center": (order, 6), "warehouse": (line, 5)},
        "ws": {"web_site": (order, 6), "web_page": (line, 12), "warehouse": (line, 5)},
    }[prefix]
    for name, (number, count) in (dimensions | {"promo": (line, 30)}).items():
        column = f"{prefix}_{name}_sk"
        sets[column] = f"CASE WHEN {column} IS NULL THEN NULL ELSE 1 + {number} / 2 % {count} END"
    if prefix != "ss":
        sets[f"{prefix}_ship_date_sk"] = (
            f"{prefix}_ship_date_sk - {prefix}_sold_date_sk + " + (sets[f"{prefix}_sold_date_sk"])
        )
    price = f"{prefix}_ext_sales_price"
    sets[price] = f"CASE WHEN {line} % 5 = 0 THEN 100.00 + {line} % 3 ELSE {price} END"
    profit = f"{prefix}_net_profit"
    sets[profit] = f"CASE WHEN {line} % 4 = 0 THEN 60 + {line} % 240 ELSE {profit} END"
    shown = ", ".join(f"{column} = {value}" for column, value in sets.items())
    return f"UPDATE {SALES[prefix]} SET {shown} FROM days"


# Returns follow their sales: the same customer, place and day, some weeks later.
RETURNS = (
    """
UPDATE store_returns SET sr_customer_sk = ss_customer_sk, sr_store_sk = ss_store_sk,
  sr_returned_date_sk = CASE {hash} % 4 WHEN 0 THEN {day} WHEN 1 THEN {november}
    ELSE ss_sold_date_sk + 1 + {hash} % 90 END,
  sr_reason_sk = CASE WHEN {hash} % 5 = 0 THEN 28 ELSE 1 + {hash} % 35 END,
  sr_return_amt = CASE WHEN {hash} % 9 = 0 THEN 10000 + {hash} % 5000 ELSE sr_return_amt END
FROM store_sales, LATERAL (SELECT ss_item_sk AS item, ss_ticket_number AS number) AS r
WHERE sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number""",
    """
UPDATE catalog_returns SET cr_refunded_customer_sk = cs_bill_customer_sk,
  cr_returning_customer_sk = cs_ship_customer_sk, cr_call_center_sk = cs_call_center_sk,
  cr_returned_date_sk = CASE {hash} % 4 WHEN 0 THEN {day} WHEN 1 THEN {november}
    ELSE cs_sold_date_sk + 1 + {hash} % 90 END,
  cr_reason_sk = 1 + {hash} % 35, cr_warehouse_sk = cs_warehouse_sk,
  cr_return_amount =
    CASE WHEN {hash} % 9 = 0 THEN 10000 + {hash} % 5000 ELSE cr_return_amount END
FROM catalog_sales, LATERAL (SELECT cs_item_sk AS item, cs_order_number AS number) AS r
WHERE cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number""",
    """
UPDATE web_returns SET wr_refunded_customer_sk = ws_bill_customer_sk,
  wr_returning_customer_sk = ws_ship_customer_sk, wr_web_page_sk = ws_web_page_sk,
  wr_refunded_cdemo_sk = ws_bill_cdemo_sk, wr_returning_cdemo_sk = ws_bill_cdemo_sk,
  wr_refunded_addr_sk = ws_bill_addr_sk,
  wr_returned_date_sk = CASE {hash} % 4 WHEN 0 THEN {day} WHEN 1 THEN {november}
    ELSE ws_sold_date_sk + 1 + {hash} % 90 END,
  wr_reason_sk = 1 + {hash} % 35,
  wr_return_amt = CASE WHEN {hash} % 4 = 0 THEN 10000 + {hash} % 5000 ELSE wr_return_amt END
FROM web_sales, LATERAL (SELECT ws_item_sk AS item, ws_order_number AS number) AS r
WHERE wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number""",
)
