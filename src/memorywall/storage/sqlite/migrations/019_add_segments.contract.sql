-- Parts of the search index, each of entries of one tier of one owner that follow each other by id.
-- A server of the previous schema would change entries and leave their segments, so it cannot
-- continue.
-- Rows stand by number and not in the key, because their content is large.
CREATE TABLE index_segments (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    tier TEXT NOT NULL,
    first TEXT NOT NULL,
    last TEXT NOT NULL,
    form TEXT NOT NULL,
    entries INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, owner, tier, first)
) STRICT;
