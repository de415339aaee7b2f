-- Signs of life of the daemon that has the lease `fence`: when it was last heard, how many seconds
-- its loop had then been in the same round, and with what, NULL if with nothing that takes long.
-- Not in table lease, whose row every commit locks: a long one would delay the heartbeat.
CREATE TABLE headrace.daemon_heartbeat (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    fence bigint NOT NULL,
    beat_at timestamptz NOT NULL,
    round_seconds double precision NOT NULL,
    busy text
);
