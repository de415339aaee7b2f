"""PostgreSQL as Headrace sees it: connections and the tables that can be captured."""
