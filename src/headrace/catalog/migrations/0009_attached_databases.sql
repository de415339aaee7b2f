-- Where an attached database is: a connection string without a password, or a reference to where
-- one is kept, for its readers and for the role that sets capture up. The home database has none.
-- `oid` is the database's own in its server, so that none is captured twice under two names;
-- `share` weighs it against others when refreshes wait for workers.
ALTER TABLE headrace.databases
    ADD COLUMN address text,
    ADD COLUMN setup_address text,
    ADD COLUMN oid bigint,
    ADD COLUMN share integer NOT NULL DEFAULT 1 CHECK (share > 0);
