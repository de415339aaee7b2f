-- about: a column of the enclosing query stood on both sides of a left join, and made a key
-- tables
CREATE TABLE t0 (id int, PRIMARY KEY (id));
CREATE TABLE t2 (id int, PRIMARY KEY (id));
INSERT INTO t0 VALUES (10);
INSERT INTO t0 VALUES (11);
-- view
CREATE STREAM TABLE v AS SELECT q4.a9 FROM (SELECT t1.id AS a1 FROM t0 AS t1) AS q2 LEFT JOIN LATERAL (SELECT t3.id AS a9 FROM t2 AS t3 WHERE (t3.id = q2.a1) ORDER BY a9 LIMIT 1) AS q4 ON true;
-- change
INSERT INTO t2 VALUES (10);
