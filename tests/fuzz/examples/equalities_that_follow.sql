-- about: two columns equal to one column of the other side made a key of one name twice
-- tables
CREATE TABLE t (id int, y int, PRIMARY KEY (id));
CREATE TABLE m (id int, tid int, PRIMARY KEY (id));
INSERT INTO t VALUES (1, 1), (2, 3);
INSERT INTO m VALUES (1, 1), (2, 2), (3, 1);
-- view
CREATE STREAM TABLE v AS SELECT t.id, m.id AS i FROM t, m WHERE t.id = m.tid AND t.y = m.tid;
-- change
DELETE FROM t WHERE id = 1;
-- change
UPDATE t SET y = 2;
INSERT INTO t VALUES (1, 1);
