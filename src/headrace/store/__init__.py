"""Every relation is a log of weighted rows, one Delta table a relation.

    layout    the two internal columns, the types a column may have
    arrangement how rows lie in large files; `apart` cuts these between the values of a column
    log       pins, files and what a relation's log holds at one version
    place     where the tables are: addresses, file systems, durability
    part      one Parquet file: writing it, checking one that Spark wrote
    commit    one Delta commit from exactly one version; `actions` are what is in it
    failure   which error a failing disk or a shortened log becomes
    parts     rows that only pass through, in a folder of parts
    compaction which old files are worth summing up
    vacuum    removing what no log names any more
    recent    the newest rows, and the footers of files, kept in memory
    net       the sum of weights a row
    keys      a set of keys; `groups` tells where they can be in a file, `lookup` finds their rows
    index     the rows of large files by a column, beside the files and faster; `mapped` holds them
    store     the seam; `delta` is the real one, `memory` its fake

A writer takes a pin, commits from exactly that version and gets the next pin, which the catalog
records. After any failure it calls `rollback` with the recorded pin before it writes again.
"""

from headrace.store.arrangement import Arrangement
from headrace.store.delta import DeltaStore
from headrace.store.keys import Keys
from headrace.store.layout import EPOCH, WEIGHT, least_weight
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.memory import MemoryStore
from headrace.store.net import net, net_retracted
from headrace.store.store import Store
from headrace.store.written_parts import WrittenParts

__all__ = [
    "EPOCH",
    "WEIGHT",
    "Arrangement",
    "By",
    "DeltaStore",
    "Keys",
    "LogFile",
    "LookupCost",
    "MemoryStore",
    "Pin",
    "RelationLog",
    "Store",
    "WrittenParts",
    "least_weight",
    "net",
    "net_retracted",
]
