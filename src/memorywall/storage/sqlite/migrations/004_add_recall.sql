-- What recall keeps beside the entries. None of it is text of theirs, and all of it goes with them.

-- The model stands before the entry, so that a whole model is found at its own end of the key. Rows
-- stand by number and not in the key: a page of the key has room for many entries, one of vectors
-- for a few.
CREATE TABLE entry_vectors (
    tenant TEXT NOT NULL,
    entry TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (tenant, model, entry)
) STRICT;

CREATE TABLE entry_uses (
    tenant TEXT NOT NULL,
    entry TEXT NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (tenant, entry)
) STRICT, WITHOUT ROWID;

-- There is a row for every model under which vectors are kept, so that the vectors of an entry are
-- found without an index for it, and cost nothing where there are none.
CREATE TABLE embedding_positions (
    tenant TEXT NOT NULL,
    model TEXT NOT NULL,
    position INTEGER NOT NULL,
    holder TEXT NOT NULL,
    held_until TEXT NOT NULL,
    PRIMARY KEY (tenant, model)
) STRICT, WITHOUT ROWID;
