-- In the status of every stream table also its stratum, the rounds of its last fixed point, the tables
-- that it was last refreshed with, and how the sources below it are captured.
CREATE OR REPLACE VIEW headrace.status AS
WITH RECURSIVE reads (reader, relation) AS (
    SELECT stream_table.relation, input.relation
    FROM headrace.stream_tables AS stream_table
    CROSS JOIN LATERAL unnest(stream_table.inputs) AS input (relation)
    UNION
    SELECT reads.reader, input.relation
    FROM reads
    JOIN headrace.stream_tables AS below ON below.relation = reads.relation
    CROSS JOIN LATERAL unnest(below.inputs) AS input (relation)
),
waiting AS (
    SELECT DISTINCT ON (reads.reader)
        reads.reader,
        format('waits for database %s: %s', database.alias, database.failure) AS reason
    FROM reads
    JOIN headrace.sources AS source ON source.relation = reads.relation
    JOIN headrace.databases AS database ON database.id = source.database
    WHERE database.failing_since IS NOT NULL
    ORDER BY reads.reader, database.id
),
-- From the sources on, one more for every edge that is not monotone. Cycles are monotone, so there is
-- an end.
layers (relation, stratum) AS (
    SELECT relation, 0 FROM headrace.sources
    UNION
    SELECT relation, 0 FROM headrace.stream_tables WHERE inputs = '{}'
    UNION
    SELECT
        stream_table.relation,
        layers.stratum
            + (jsonb_array_length(coalesce(stream_table.edges -> layers.relation, '[]')) > 0)::integer
    FROM layers
    JOIN headrace.stream_tables AS stream_table ON layers.relation = ANY (stream_table.inputs)
),
captured AS (
    SELECT
        reads.reader,
        jsonb_agg(
            jsonb_build_object(
                'source',
                concat_ws(
                    '.',
                    CASE WHEN database.address IS NOT NULL THEN database.alias END,
                    source.schema,
                    source.name
                ),
                'mode', source.mode,
                'slot', CASE WHEN source.mode <> 'TRIGGER' THEN database.following ->> 'slot' END
            )
            ORDER BY database.id, source.schema, source.name
        ) AS sources
    FROM reads
    JOIN headrace.sources AS source ON source.relation = reads.relation
    JOIN headrace.databases AS database ON database.id = source.database
    GROUP BY reads.reader
)
SELECT
    format('%I.%I', stream_table.schema, stream_table.name) AS name,
    stream_table.status,
    -- A reason may quote values of a source: it is for those who may read where it is kept.
    CASE
        WHEN coalesce(stream_table.reason, waiting.reason) IS NULL
            OR has_table_privilege('headrace.stream_tables'::regclass, 'SELECT')
        THEN coalesce(stream_table.reason, waiting.reason)
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
    latest.finished_at AS last_refresh_at,
    coalesce(
        (SELECT max(layers.stratum) FROM layers WHERE layers.relation = stream_table.relation), 0
    ) AS stratum,
    latest.iterations AS last_iterations,
    ARRAY(
        SELECT format('%I.%I', member.schema, member.name)
        FROM headrace.stream_tables AS member
        WHERE member.relation = ANY (latest."group")
        ORDER BY member.schema, member.name
    ) AS last_group,
    captured.sources AS capture
FROM headrace.stream_tables AS stream_table
LEFT JOIN waiting ON waiting.reader = stream_table.relation
LEFT JOIN captured ON captured.reader = stream_table.relation
LEFT JOIN LATERAL (
    SELECT
        refresh.mode, refresh.started_at, refresh.finished_at, refresh.iterations, refresh."group"
    FROM headrace.refreshes AS refresh
    WHERE refresh."table" = stream_table.relation
    ORDER BY refresh.id DESC
    LIMIT 1
) AS latest ON true;
