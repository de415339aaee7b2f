-- Keeps users' DML off served tables. Attached to each of them as a statement-level trigger, BEFORE
-- INSERT OR UPDATE OR DELETE OR TRUNCATE; publish says SET LOCAL headrace.publishing = on.
-- It guards against mistakes; who may write the table at all is a matter of grants.
-- SQLSTATE HR001 is our own: 42501 would suggest a missing grant, 42809 a wrong kind of object.
CREATE FUNCTION headrace.refuse_dml() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The setting is NULL before its first use in a session and '' after the transaction that set it.
    IF current_setting('headrace.publishing', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'table "%" is a stream table and cannot be changed by %',
            TG_TABLE_NAME, TG_OP
            USING
                ERRCODE = 'HR001',
                DETAIL = format(
                    '%I.%I holds the result of a query and is written only when it is refreshed.',
                    TG_TABLE_SCHEMA, TG_TABLE_NAME
                ),
                HINT = 'Change the tables that its query reads, or drop the stream table.',
                SCHEMA = TG_TABLE_SCHEMA,
                TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END
$$;
