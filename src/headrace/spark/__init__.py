"""Spark: starting it, sessions, running queries, copying sources.

run             runs queries and writes; `jobs` names, counts and stops their Spark jobs
session         one Spark and its sessions; `session_pool` lends sessions to parallel calls
origins         where sessions come from; `launch` starts an application, `jvm` its Java
profiles        the settings of sessions
views           inputs of queries as views; `jvm_shortcuts` passes rows to the JVM faster
prepared        physical plans kept between runs
copy            copies of sources, read by `postgres_source` on executors
schema          Arrow schemas as Spark schemas
failures        Spark's errors as HeadraceErrors
"""
