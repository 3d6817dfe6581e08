-- The table of fences: one row per guarded resource, with the highest token accepted. The same text as mysqlFenceTableSql().
-- Never delete its rows while a lock of that name can be in anybody's hands.
CREATE TABLE IF NOT EXISTS `holdfast_fences` (
  resource VARBINARY(1024) NOT NULL PRIMARY KEY,
  token BIGINT UNSIGNED NOT NULL CHECK (token >= 1)
) ENGINE = InnoDB;
