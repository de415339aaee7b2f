-- How fresh every stream table is, for everybody: the view reads with its owner's rights and shows
-- no row of a source or of a served table.
CREATE VIEW headrace.status AS
SELECT
    format('%I.%I', stream_table.schema, stream_table.name) AS name,
    stream_table.status,
    stream_table.reason,
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

GRANT USAGE ON SCHEMA headrace TO PUBLIC;
GRANT SELECT ON headrace.status TO PUBLIC;
