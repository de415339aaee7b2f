"""Ten batches of changes of all eight tables, aimed at the parameters of the queries.

Every batch brings orders that meet the conditions of each query, with prices and counts that move
its groups, maxima and first rows; beside that it updates and deletes a part of what was generated.
New keys are far beyond the generated ones.
"""

from __future__ import annotations

from dataclasses import dataclass

BATCHES = 10
SUPPLIERS = {
    "FRANCE": 1001,
    "GERMANY": 1002,
    "INDIA": 1003,
    "BRAZIL": 1004,
    "CANADA": 1005,
    "SAUDI ARABIA": 1006,
}
CUSTOMERS = {"GERMANY": 100_001, "FRANCE": 100_002, "INDIA": 100_003, "CANADA": 100_004}
BUILDING = 100_001


@dataclass(frozen=True)
class Line:
    """A line of an order; dates as (shipped, committed, received)."""

    part: int
    supplier: int
    price: int
    dates: tuple[str, str, str]
    quantity: int = 10
    discount: str = "0.06"
    flag: str = "N"
    instruct: str = "NONE"
    mode: str = "RAIL"


def batch(number: int) -> list[str]:
    """The statements of one batch, in one transaction."""
    first = _first() if number == 0 else []
    return [*first, *_parts(number), *_orders(number), *_updates(number), *_deletes(number)]


def _first() -> list[str]:
    """Suppliers and customers of the nations that queries ask for."""
    suppliers = [
        f"INSERT INTO supplier SELECT {key}, 'Supplier#{key}', 'new street {key}', n_nationkey,"
        f" '30-000-000-0000', 5000.00, 'fresh' FROM nation WHERE n_name = '{nation}'"
        for nation, key in SUPPLIERS.items()
    ]
    customers = [
        f"INSERT INTO customer SELECT {key}, 'Customer#{key}', 'new road {key}', n_nationkey,"
        f" '99-000-000-0000', 100.00, 'BUILDING', 'fresh' FROM nation WHERE n_name = '{nation}'"
        for nation, key in CUSTOMERS.items()
    ]
    return suppliers + customers


def _parts(number: int) -> list[str]:
    """One part for each query that asks for a brand, a type, a size, a container or a name."""
    base = 100_000 + 10 * number
    wanted = (
        (0, "plain new part", "Brand#11", "STANDARD PLATED BRASS", 15, "JUMBO PKG"),
        (1, "dark green part", "Brand#11", "ECONOMY ANODIZED STEEL", 7, "JUMBO PKG"),
        (2, "plain new part", "Brand#11", "PROMO PLATED TIN", 49, "JUMBO PKG"),
        (3, "plain new part", "Brand#23", "SMALL PLATED TIN", 7, "MED BOX"),
        (4, "plain new part", "Brand#12", "SMALL PLATED TIN", 3, "SM CASE"),
        (5, "forest new part", "Brand#11", "SMALL PLATED TIN", 7, "JUMBO PKG"),
    )
    statements = [
        f"INSERT INTO part VALUES ({base + i}, '{name}', 'Manufacturer#1', '{brand}', '{type_}',"
        f" {size}, '{container}', 1000.00, 'fresh')"
        for i, name, brand, type_, size, container in wanted
    ]
    for i, *_ in wanted:
        for supplier in SUPPLIERS.values():
            statements.append(
                f"INSERT INTO partsupp VALUES ({base + i}, {supplier}, {1000 + number},"
                f" {100 + (supplier + number) % 7}.25, 'fresh')"
            )
    return statements


def _orders(number: int) -> list[str]:
    part = 100_000 + 10 * number
    big = 400_000 + 20_000 * number
    france, germany, india, brazil, canada, saudi = SUPPLIERS.values()
    late = ("1994-03-01", "1994-03-10", "1994-03-20")
    quarter = ("1996-02-01", "1996-02-10", "1996-02-05")
    return [
        *order(number, 0, BUILDING, "1995-03-01", Line(part, france, big, ("1995-03-20",) * 3)),
        *order(
            number, 1, CUSTOMERS["INDIA"], "1993-08-01",
            Line(part, india, 1000, ("1993-08-10", "1993-08-12", "1993-08-20")),
        ),
        *order(
            number, 2, CUSTOMERS["INDIA"], "1994-06-01",
            Line(part + 1, india, 2000 + number, ("1994-07-01",) * 3),
        ),
        *order(
            number, 3, CUSTOMERS["GERMANY"], "1995-05-01",
            Line(part, france, 3000 + number, ("1995-06-01",) * 3),
        ),
        *order(
            number, 4, CUSTOMERS["FRANCE"], "1995-07-01",
            Line(part + 2, germany, 3500 + number, ("1995-09-10",) * 3),
        ),
        *order(
            number, 5, CUSTOMERS["CANADA"], "1996-05-01",
            Line(part + 1, brazil if number % 2 else canada, 5000 * (number + 1),
                 ("1996-06-01",) * 3),
        ),
        *order(
            number, 6, CUSTOMERS["CANADA"], "1993-11-01",
            Line(part, india, big, ("1993-12-01",) * 3, flag="R"),
        ),
        *order(number, 7, BUILDING, "1994-02-01", Line(part, france, 900, late, mode="SHIP")),
        *order(
            number, 8, BUILDING, "1996-01-15",
            Line(part, (france, germany, india)[number % 3], 20 * big, quarter),
        ),
        *order(
            number, 9, BUILDING, "1997-01-15",
            *(Line(part + 3, france, 7000, ("1997-02-01",) * 3, quantity=q)
              for q in (50, 50, 50, 50, 50, 50, 50, 1)),
        ),
        *order(
            number, 10, BUILDING, "1997-02-15",
            Line(part + 4, france, 8000 + number, ("1997-03-01",) * 3, quantity=5,
                 instruct="DELIVER IN PERSON", mode="AIR"),
        ),
        *order(
            number, 11, BUILDING, "1994-08-15",
            Line(part + 5, canada, 800, ("1994-09-01",) * 3, quantity=20 + number),
        ),
        *order(
            number, 12, BUILDING, "1992-08-15",
            Line(part, saudi, 800, ("1992-09-01", "1992-09-02", "1992-09-20")),
            Line(part, canada, 800, ("1992-09-01", "1992-09-20", "1992-09-10")),
            status="F",
        ),
    ]  # fmt: skip


def order(
    number: int, place: int, customer: int, date: str, *lines: Line, status: str = "O"
) -> list[str]:
    key = 1_000_000 + 100 * number + place
    total = sum(line.price for line in lines)
    statements = [
        f"INSERT INTO orders VALUES ({key}, {customer}, '{status}', {total}.00, '{date}',"
        f" '{1 + place % 5}-{('URGENT', 'HIGH', 'MEDIUM', 'NOT SPECIFIED', 'LOW')[place % 5]}',"
        f" 'Clerk#000000001', 0, 'fresh order')"
    ]
    for i, line in enumerate(lines, 1):
        shipped, committed, received = line.dates
        statements.append(
            f"INSERT INTO lineitem VALUES ({key}, {line.part}, {line.supplier}, {i},"
            f" {line.quantity}, {line.price}.00, {line.discount}, 0.02, '{line.flag}', 'O',"
            f" '{shipped}', '{committed}', '{received}', '{line.instruct}', '{line.mode}', 'fresh')"
        )
    return statements


def _updates(number: int) -> list[str]:
    nation = ("FRANCE", "INDIA", "BRAZIL", "CHINA", "KENYA")[number // 2]
    # A nation goes to another region in one batch, and comes back in the next.
    step = "(n_regionkey + 1) % 5" if number % 2 == 0 else "(n_regionkey + 4) % 5"
    code = ("13", "31", "23", "29", "30", "18", "17")[number % 7]
    return [
        f"UPDATE region SET r_comment = 'batch {number}' WHERE r_regionkey = {number % 5}",
        f"UPDATE nation SET n_regionkey = {step} WHERE n_name = '{nation}'",
        f"UPDATE supplier SET s_acctbal = s_acctbal + 1, s_address = 'moved {number}'"
        f" WHERE s_suppkey % 10 = {number} OR s_suppkey = {SUPPLIERS['CANADA']}",
        f"UPDATE partsupp SET ps_availqty = ps_availqty + 100, ps_supplycost = ps_supplycost + 1"
        f" WHERE ps_partkey % 50 = {number} OR ps_suppkey = {SUPPLIERS['GERMANY']}",
        f"UPDATE part SET p_size = 1 + (p_size + 13) % 50 WHERE p_partkey % 60 = {number}",
        f"UPDATE customer SET c_acctbal = c_acctbal + 50, c_phone = '{code}' || substr(c_phone, 3)"
        f" WHERE c_custkey % 40 = {number}",
        f"UPDATE orders SET o_orderdate = o_orderdate + 40 WHERE o_orderkey % 331 = {number}",
        f"UPDATE orders SET o_custkey = 1 + (o_custkey + 7) % 1500 WHERE o_orderkey % 333 ="
        f" {number}",
        f"UPDATE lineitem SET l_quantity = 1 + (l_quantity + 9)::int % 50, l_discount = 0.05"
        f" WHERE l_orderkey % 211 = {number}",
        f"UPDATE lineitem SET l_linenumber = l_linenumber + 10 WHERE l_orderkey % 601 = {number}",
        f"INSERT INTO customer SELECT {110_000 + number}, 'Customer#{number}', 'road', 3,"
        f" '{code}-000-000-0000', {9000 + number}.00, 'MACHINERY', 'fresh'",
    ]


def _deletes(number: int) -> list[str]:
    statements = [
        f"DELETE FROM lineitem WHERE l_orderkey % 307 = {number} AND l_orderkey < 1000000",
        f"DELETE FROM orders WHERE o_orderkey % 307 = {number} AND o_orderkey < 1000000",
        f"DELETE FROM lineitem WHERE l_orderkey % 409 = {number} AND l_linenumber = 1",
        f"DELETE FROM partsupp WHERE ps_partkey = {100 + number}",
        f"DELETE FROM part WHERE p_partkey = {200 + number}",
        f"DELETE FROM supplier WHERE s_suppkey = {50 + number}",
        f"DELETE FROM customer WHERE c_custkey = {300 + number}",
    ]
    if number >= 2:
        old = 1_000_000 + 100 * (number - 2)
        statements.append(f"DELETE FROM lineitem WHERE l_orderkey = {old + number}")
    if number % 3 == 0:
        statements += [
            f"INSERT INTO region VALUES ({10 + number}, 'NOWHERE {number}', 'fresh')",
            f"INSERT INTO nation VALUES ({30 + number}, 'NOLAND {number}', {10 + number}, 'fresh')",
        ]
    if number % 3 == 1:
        statements += [
            f"DELETE FROM nation WHERE n_nationkey = {29 + number}",
            f"DELETE FROM region WHERE r_regionkey = {9 + number}",
        ]
    return statements
