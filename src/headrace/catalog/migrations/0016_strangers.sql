-- A reason may quote values of a source. Everybody may read the view, so it shows reasons only to
-- those who may read the table that they are kept in; functions in a view ask for whoever reads it.
CREATE OR REPLACE VIEW headrace.status AS
SELECT
    format('%I.%I', stream_table.schema, stream_table.name) AS name,
    stream_table.status,
    CASE
        WHEN stream_table.reason IS NULL
            OR has_table_privilege('headrace.stream_tables'::regclass, 'SELECT')
        THEN stream_table.reason
        ELSE '<insufficient privilege>'
    END AS reason,
    stream_table.epoch,
    stream_table.as_of,
    -- greatest() passes over NULL: a table never published has no lag, not a lag of zero. Clocks
    -- of two servers may disagree, and now() is the start of the reader's transaction: as_of can
    -- lie after it.
    CASE
        WHEN stream_table.as_of IS NOT NULL
        THEN greatest(now() - stream_table.as_of, interval '0')
    END AS lag,
    stream_table.refresh_mode,
    stream_table.schedule,
    latest.mode AS last_refresh_mode,
    latest.finished_at - latest.started_at AS last_refresh_duration,
    latest.finished_at AS last_refresh_at
FROM headrace.stream_tables AS stream_table
LEFT JOIN LATERAL (
    SELECT refresh.mode, refresh.started_at, refresh.finished_at
    FROM headrace.refreshes AS refresh
    WHERE refresh."table" = stream_table.relation
    ORDER BY refresh.id DESC
    LIMIT 1
) AS latest ON true;

-- The number of the writer's advisory lock. Any role can take an advisory lock, and see the numbers
-- of those that are held: a writer that finds a stranger in its way chooses another number.
ALTER TABLE headrace.lease ADD COLUMN lock_number integer NOT NULL DEFAULT 1;

-- The role in whose name the query was given: views with security_invoker are read with its rights.
ALTER TABLE headrace.stream_tables ADD COLUMN creator text;
