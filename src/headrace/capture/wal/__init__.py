"""Change capture from the write-ahead log: the messages of a replication slot as weighted rows.

availability      whether WAL mode is possible for a server, a role and a table
identity          replica identities; `publication` the tables that the slot sends
slot              the replication slot: created, read, advanced, dropped
slot_reader       reading a slot by peeks; `streaming_reader` by a stream where possible
stream            a replication session; `spool` keeps its messages, `spill` those on disk
protocol          the messages of pgoutput and of the replication protocol
decoder           messages to rows: `rows` finds the values, `text_decoders` parse them,
                  `value_decoders` makes stored rows of them
read              the changes of a cut; `visibility` decides which transactions belong to it
following         what the catalog records; `slot_probe` compares it with the server
pending           whether a slot has changes that no cut has taken
"""
