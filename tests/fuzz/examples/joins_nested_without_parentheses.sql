-- about: a join nested to the right without parentheses was taken for a mistake
-- tables
CREATE TABLE a (x int);
CREATE TABLE b (y int);
CREATE TABLE c (z int);
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (1), (3);
INSERT INTO c VALUES (1), (3);
-- view
CREATE STREAM TABLE v AS SELECT a.x, b.y, l.z FROM a LEFT JOIN b CROSS JOIN LATERAL (SELECT z FROM c WHERE c.z = b.y) AS l ON a.x = b.y;
-- change
DELETE FROM c WHERE z = 1;
INSERT INTO a VALUES (3);
