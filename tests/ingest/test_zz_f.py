from tests.ingest.test_transition_crashes import *
from tests.crash.transitions import there_and_back
def test_life(dsn, tmp_path):
    kinds=("NameSlot","PublishSource","MakeSlot","RecordModes","StopFollowing","MoveSlot")
    with psycopg.connect(dsn, autocommit=True) as a:
        run(dsn, TABLES)
        a.execute("CREATE TABLE notes (id int, note text)")
        with headrace.connect(dsn, home=tmp_path) as p:
            put_tables(p, Request("owned", QUERY), Request("noted","SELECT * FROM notes"))
            take_cut(p)
            w=World(p,dsn,a,"")
            seen=[]
            p._engine.watch=lambda when,s: seen.append(type(s).__name__)
            there_and_back(p)
            assert set(kinds)<=set(seen), set(kinds)-set(seen)
            run(dsn, CHANGE); take_cut(p); assert_same(w)
