-- about: equalities that follow from others made a refresh fail
-- tables
CREATE TABLE t (id int, PRIMARY KEY (id));
CREATE TABLE mc (movie_id int, company int);
CREATE TABLE mk (movie_id int, keyword int);
INSERT INTO t VALUES (1), (2), (3);
INSERT INTO mc VALUES (1, 7), (2, 8), (2, 9);
INSERT INTO mk VALUES (1, 4), (2, 5), (3, 6);
-- view
CREATE STREAM TABLE v AS SELECT t.id, mc.company, mk.keyword FROM t, mc, mk WHERE t.id = mc.movie_id AND t.id = mk.movie_id AND mk.movie_id = mc.movie_id;
-- change
DELETE FROM t WHERE id = 2;
-- change
INSERT INTO t VALUES (2);
UPDATE mc SET movie_id = 3 WHERE company = 8;
