-- about: verify rendered two columns of the same name for a table function in FROM
-- tables
CREATE TABLE t (id int, g int);
INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL);
-- view
CREATE STREAM TABLE v AS SELECT f.a, q.x, u.b FROM unnest(ARRAY[1, 2, 2, NULL]) AS f (a) LEFT JOIN LATERAL (SELECT t.g AS x FROM t WHERE t.id = f.a) AS q ON true CROSS JOIN generate_series(1, least(q.x, 2)) AS u (b) WHERE f.a < (SELECT max(t.id) FROM t);
-- change
UPDATE t SET g = 2 WHERE id = 1;
DELETE FROM t WHERE id = 3;
-- change
INSERT INTO t VALUES (4, 4), (1, 1);
