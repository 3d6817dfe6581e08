-- The table of fences: one row per guarded resource, with the highest token accepted. The same text as fenceTableSql().
-- Never delete its rows while a lock of that name can be in anybody's hands.
CREATE TABLE IF NOT EXISTS "holdfast_fences" (
  resource text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL CHECK (token >= 1)
);
