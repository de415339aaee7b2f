"""Every relation is a log of weighted rows, one Delta table a relation.

    store       the protocol of a store; `delta` implements it on Delta tables
    log         pins, files, and the log of a relation at one version, as values
    layout      the internal columns, the types of columns, the order of rows in large files
    location    where the tables are: addresses, file systems, durable writes
    commit      Delta commits from exactly one version; `actions` are their contents
    failure     the errors for failing disks and damaged logs
    parquet     Parquet files of weighted rows: written, checked, read
    reader      reading files and looking up keys; `cache` keeps what was read
    keys        sets of keys; `lookup` finds their rows in files, `index` finds them faster
    net         the sum of the weights of each row
    compaction  which old files are worth merging; `vacuum` removes unnamed files

A writer takes a pin, commits from exactly that version and gets the next pin, which the catalog
records. After any failure it calls `rollback` with the recorded pin before it writes again.
"""

from headrace.store.delta import DeltaStore
from headrace.store.keys import Keys
from headrace.store.layout import EPOCH, WEIGHT, Arrangement, least_weight
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.net import net, net_retracted
from headrace.store.parquet import WrittenParts
from headrace.store.store import Store

__all__ = [
    "EPOCH",
    "WEIGHT",
    "Arrangement",
    "By",
    "DeltaStore",
    "Keys",
    "LogFile",
    "LookupCost",
    "Pin",
    "RelationLog",
    "Store",
    "WrittenParts",
    "least_weight",
    "net",
    "net_retracted",
]
