-- The epoch of the latest change of a relation that readers see; NULL where that is its pin's.
ALTER TABLE headrace.relations ADD COLUMN shown_epoch bigint;

-- In how many ticks of daemons tables of a stratum were refreshed, and how many skipped it.
CREATE TABLE headrace.strata (
    stratum integer PRIMARY KEY,
    refreshed bigint NOT NULL,
    skipped bigint NOT NULL,
    skipped_last boolean NOT NULL,
    last_tick_at timestamptz NOT NULL
);
