-- about: a natural join after LATERAL merged columns of the items before the comma
-- tables
CREATE TABLE a (n int, x int);
CREATE TABLE b (m int);
CREATE TABLE c (n int, m int);
INSERT INTO a VALUES (1, 5), (2, 6);
INSERT INTO b VALUES (1), (3);
INSERT INTO c VALUES (9, 1), (1, 2);
-- view
CREATE STREAM TABLE v AS SELECT a.n, a.x, c.n AS k, m FROM a, LATERAL (SELECT b.m FROM b) AS l NATURAL FULL JOIN c;
-- change
INSERT INTO b VALUES (2);
DELETE FROM c WHERE m = 1;
