-- The tiers that a daemon found for tables whose tier depends on reads, and what comes next if
-- nobody reads them.
CREATE TABLE headrace.tiers (
    relation text PRIMARY KEY,
    tier text NOT NULL,
    reads_per_minute double precision NOT NULL,
    next_tier text,
    next_at timestamptz
);
