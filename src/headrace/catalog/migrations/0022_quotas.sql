-- How many workers of a daemon a database is entitled to, NULL for its share of what is left, and
-- which comes first where they do not suffice: the higher one.
ALTER TABLE headrace.databases
    ADD COLUMN quota integer CHECK (quota > 0),
    ADD COLUMN priority integer NOT NULL DEFAULT 0;
