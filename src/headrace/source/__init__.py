"""PostgreSQL databases: connections, system catalogs, rights, and reading of rows.

connection   connections to one database; `conninfo` their strings and settings
faults       PostgreSQL's errors as HeadraceErrors
server       identity of a server and default collation of a database
table        a source table; `introspect` reads it from the system catalogs
rights       who may read a table, and whose code reading could run; `views` the same for views
describe     the columns of a query, and the objects that it calls
reading      rows in their stored form; `snapshot` reads them in an exported snapshot
"""
