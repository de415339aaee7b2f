"""The catalog: records, the protocol that stores them, its two stores, numbered migrations."""

from headrace.catalog.catalog import Catalog, Change, Record, Transaction
from headrace.catalog.memory import MemoryCatalog
from headrace.catalog.postgres import PostgresCatalog
from headrace.catalog.relation_id import new_relation_id
from headrace.catalog.state import State

__all__ = [
    "Catalog",
    "Change",
    "MemoryCatalog",
    "PostgresCatalog",
    "Record",
    "State",
    "Transaction",
    "new_relation_id",
]
