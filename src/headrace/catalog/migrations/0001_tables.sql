-- The records of headrace.catalog.records, one table each. A row is exchanged as one JSON object
-- whose keys are the column names, so every column has a type that JSON carries without loss.

-- Where in its log a relation stands; two numbers that are never changed apart.
CREATE TYPE headrace.pin AS (version bigint, epoch bigint);

-- Epoch numbers are taken outside the transactions that use them: rolled back or not, a number
-- is never given twice.
CREATE SEQUENCE headrace.epochs_seq AS bigint;

CREATE TABLE headrace.databases (
    id integer PRIMARY KEY,
    alias text NOT NULL UNIQUE,
    system_identifier text NOT NULL,
    timeline integer NOT NULL,
    epoch bigint NOT NULL,
    snapshot pg_snapshot,
    cut_at timestamptz
);

-- One row for each database that was cut at an epoch; a database without a row at an epoch is, at
-- that epoch, where its latest earlier row says.
CREATE TABLE headrace.epochs (
    epoch bigint NOT NULL,
    database integer NOT NULL REFERENCES headrace.databases ON DELETE CASCADE,
    snapshot pg_snapshot NOT NULL,
    cut_at timestamptz NOT NULL,
    PRIMARY KEY (database, epoch)
);

CREATE TABLE headrace.relations (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9]+$'),
    columns jsonb NOT NULL,
    visible text[] NOT NULL,
    pin headrace.pin NOT NULL CHECK ((pin).version IS NOT NULL AND (pin).epoch IS NOT NULL),
    condition text
);

-- oid is a bigint because JSON would carry an oid as a string.
CREATE TABLE headrace.sources (
    relation text PRIMARY KEY REFERENCES headrace.relations,
    database integer NOT NULL REFERENCES headrace.databases,
    oid bigint NOT NULL,
    schema text NOT NULL,
    name text NOT NULL,
    columns jsonb NOT NULL,
    keys jsonb NOT NULL,
    storage text NOT NULL,
    row_triggers boolean NOT NULL,
    status text NOT NULL CHECK (status IN ('INITIALIZING', 'ACTIVE', 'SUSPENDED', 'ERROR')),
    reason text,
    UNIQUE (database, oid)
);

-- Names may change hands within one transaction, so they are compared at its end.
CREATE TABLE headrace.stream_tables (
    relation text PRIMARY KEY REFERENCES headrace.relations,
    schema text NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    columns jsonb NOT NULL,
    inputs text[] NOT NULL,
    key text[] NOT NULL,
    refresh_mode text NOT NULL CHECK (refresh_mode IN ('AUTO', 'DIFFERENTIAL', 'FULL')),
    schedule text,
    options jsonb NOT NULL,
    search_path text[] NOT NULL,
    status text NOT NULL CHECK (status IN ('INITIALIZING', 'ACTIVE', 'SUSPENDED', 'ERROR')),
    reason text,
    frontier jsonb NOT NULL,
    epoch bigint NOT NULL,
    as_of timestamptz,
    created_at timestamptz,
    published_at timestamptz,
    UNIQUE (schema, name) DEFERRABLE INITIALLY DEFERRED
);

-- "table" is a relation id without a foreign key: history outlives the table.
-- phases are json, not jsonb: their order is part of what they say.
CREATE TABLE headrace.refreshes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "table" text NOT NULL,
    epoch bigint NOT NULL,
    mode text NOT NULL,
    reason text NOT NULL,
    rows_inserted bigint NOT NULL,
    rows_deleted bigint NOT NULL,
    phases json NOT NULL,
    spark_jobs integer NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    versions jsonb NOT NULL,
    error text
);
CREATE INDEX ON headrace.refreshes ("table", id);

CREATE TABLE headrace.receipts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "table" text NOT NULL,
    epoch bigint NOT NULL,
    equal boolean NOT NULL,
    rows bigint NOT NULL,
    missing bigint NOT NULL,
    surplus bigint NOT NULL,
    tolerance double precision,
    detail jsonb NOT NULL,
    verified_at timestamptz NOT NULL
);
CREATE INDEX ON headrace.receipts ("table", id);

CREATE TABLE headrace.settings (
    name text PRIMARY KEY,
    value jsonb NOT NULL
);

CREATE TABLE headrace.requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    command jsonb NOT NULL,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    result jsonb,
    error jsonb,
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    finished_at timestamptz
);
-- The holder of the lease asks for waiting requests at every tick.
CREATE INDEX ON headrace.requests (id) WHERE state = 'queued';

-- One row, locked for share by every commit: whoever takes the lease over waits for a commit that
-- is under way, and a commit that comes later meets the new number.
CREATE TABLE headrace.lease (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    fence bigint NOT NULL,
    holder text,
    pid integer,
    acquired_at timestamptz
);
INSERT INTO headrace.lease (fence) VALUES (0);
