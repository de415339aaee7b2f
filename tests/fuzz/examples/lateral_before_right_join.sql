-- about: a join after LATERAL took in the items before the comma
-- tables
CREATE TABLE a (x int);
CREATE TABLE b (y int);
CREATE TABLE c (z int);
INSERT INTO a VALUES (5);
INSERT INTO b VALUES (1);
INSERT INTO c VALUES (1), (9);
-- view
CREATE STREAM TABLE v AS SELECT a.x, c.z FROM a, LATERAL (SELECT y FROM b) AS l RIGHT JOIN c ON l.y = c.z;
-- change
INSERT INTO a VALUES (6);
DELETE FROM b;
-- change
INSERT INTO c VALUES (2);
INSERT INTO b VALUES (2), (9);
