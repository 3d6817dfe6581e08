-- The table of fences: one row per guarded resource, with the highest token accepted. The same text as sqliteFenceTableSql().
-- Never delete its rows while a lock of that name can be in anybody's hands.
CREATE TABLE IF NOT EXISTS "holdfast_fences" (
  resource TEXT PRIMARY KEY NOT NULL,
  token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token >= 1)
) WITHOUT ROWID;
