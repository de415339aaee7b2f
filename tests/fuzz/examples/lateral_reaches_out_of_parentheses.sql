-- about: a LATERAL inside of parentheses did not see the items before them
-- tables
CREATE TABLE a (x int);
CREATE TABLE b (y int);
CREATE TABLE c (z int);
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (1), (2);
INSERT INTO c VALUES (1), (2), (2);
-- view
CREATE STREAM TABLE v AS SELECT a.x, b.y, l.z FROM a, (b LEFT JOIN LATERAL (SELECT z FROM c WHERE c.z = a.x) AS l ON l.z < b.y);
-- change
DELETE FROM c WHERE z = 1;
INSERT INTO a VALUES (1);
