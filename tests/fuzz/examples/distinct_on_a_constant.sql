-- about: verify rendered a row_number without an order
-- tables
CREATE TABLE t (id int, g int);
INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL);
-- view
CREATE STREAM TABLE v AS SELECT DISTINCT ON (q.a) q.a FROM (SELECT NULL::timestamp AS a FROM t) AS q ORDER BY q.a;
-- change
DELETE FROM t;
-- change
INSERT INTO t VALUES (4, 4), (1, 1);
