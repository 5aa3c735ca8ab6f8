-- The paths of the values of a namespace that are indexed, as JSON text; the rows of the index are
-- edges. NULL in the rows of servers of earlier schemas means that there are none. Such a server
-- writes entries without these edges, so paths are declared once all servers run this schema.

ALTER TABLE namespaces ADD COLUMN indexes text COLLATE "C";
