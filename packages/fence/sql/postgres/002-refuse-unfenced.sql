-- Makes PostgreSQL itself refuse writes that show no fence. After this file, in a migration of your own:
--
--   SELECT holdfast_guard_rows('documents', 'fence');         -- the fence lies in each row's column "fence"
--   SELECT holdfast_guard_table('bookings', 'bookings');      -- the whole table belongs to the resource bookings
--   SELECT holdfast_guard_table('accounts', 'acct:', 'id');   -- the row with id 1 belongs to the resource acct:1
--   SELECT holdfast_unguard('documents');                     -- takes it away again
--
-- A guarded table refuses INSERT, UPDATE, DELETE, TRUNCATE, COPY and MERGE alike. docs/fencing.md says what no trigger sees.
-- Needs 001-fence-table.sql, and both with the search_path of your tables. What a transaction has shown is kept in settings that end
-- with it (set_config with is_local), so it works through a pooler in transaction mode. It catches writes that forgot their fence. It
-- keeps nobody out who wants in: who owns a table can disable its triggers.

-- Table of fences: remembers what this transaction has taken. AFTER, since an INSERT that loses its ON CONFLICT has taken nothing.
CREATE OR REPLACE FUNCTION holdfast_fence_taken() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  resources jsonb := COALESCE(NULLIF(current_setting('holdfast.resources', true), ''), '[]');
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.token < OLD.token THEN
    RAISE EXCEPTION 'the fence of % has accepted %, and can''t go back to %', NEW.resource, OLD.token, NEW.token
      USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
  END IF;
  IF NOT resources @> to_jsonb(NEW.resource) THEN
    PERFORM set_config('holdfast.resources', (resources || to_jsonb(NEW.resource))::text, true);
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS holdfast_fence_taken ON holdfast_fences;
CREATE TRIGGER holdfast_fence_taken AFTER INSERT OR UPDATE ON holdfast_fences
  FOR EACH ROW EXECUTE PROCEDURE holdfast_fence_taken();

-- Guarded by the table of fences: (resource) for a statement, (prefix, key column) for a row. A row that changes its key needs both.
CREATE OR REPLACE FUNCTION holdfast_refuse_untaken() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  resources jsonb := COALESCE(NULLIF(current_setting('holdfast.resources', true), ''), '[]');
  needed text[] := '{}';
  key text;
  resource text;
BEGIN
  IF TG_LEVEL = 'STATEMENT' THEN
    needed := ARRAY[TG_ARGV[0]];
  ELSE
    IF TG_OP <> 'INSERT' THEN
      EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO key USING OLD;
      needed := needed || (TG_ARGV[0] || key);
    END IF;
    IF TG_OP <> 'DELETE' THEN
      EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO key USING NEW;
      needed := needed || (TG_ARGV[0] || key);
    END IF;
  END IF;
  FOREACH resource IN ARRAY needed LOOP
    IF resource IS NULL OR NOT resources @> to_jsonb(resource) THEN
      RAISE EXCEPTION 'unfenced % of %: this transaction has not taken the fence of %', TG_OP, TG_TABLE_NAME, COALESCE(resource, 'a row without a key')
        USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
          HINT = 'Write inside postgresFences(pool).transaction(lock, ...), or after take(client, lock).';
    END IF;
  END LOOP;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$;

-- Fence in the row, 1: runs when a row is made, and when a statement names the fence's column. That is the mark of a fenced write: whoever
-- names it has shown a token, which may not be below the row's, compared here under the row's lock. A new row must bear one, too: what
-- was deleted would come back by a late INSERT. Before ON CONFLICT is decided an INSERT has shown what it would have made.
CREATE OR REPLACE FUNCTION holdfast_row_fence_shown() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  tokens jsonb := COALESCE(NULLIF(current_setting('holdfast.tokens', true), ''), '[]');
  accepted bigint := 0;
  shown bigint;
BEGIN
  EXECUTE format('SELECT COALESCE(($1).%I, 0)', TG_ARGV[0]) INTO shown USING NEW;
  IF TG_OP = 'UPDATE' THEN
    EXECUTE format('SELECT COALESCE(($1).%I, 0)', TG_ARGV[0]) INTO accepted USING OLD;
  ELSIF shown < 1 AND TG_ARGV[1] <> 'plain_inserts' THEN
    RAISE EXCEPTION 'unfenced INSERT of a row of %: its fence is %, which is no token', TG_TABLE_NAME, shown
      USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
        HINT = 'Make rows by upsert, or by an INSERT that gives the fence''s column the token.';
  END IF;
  IF shown < accepted THEN
    RAISE EXCEPTION 'the fence of a row of % has accepted %, and can''t go back to %', TG_TABLE_NAME, accepted, shown
      USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
  END IF;
  IF shown > 0 AND NOT tokens @> to_jsonb(shown) THEN
    PERFORM set_config('holdfast.tokens', (tokens || to_jsonb(shown))::text, true);
  END IF;
  RETURN NEW;
END $$;

-- Fence in the row, 2: runs at every change of a row, after 1. The row's fence must be a token that this transaction has shown.
CREATE OR REPLACE FUNCTION holdfast_row_refuse_unfenced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  tokens jsonb := COALESCE(NULLIF(current_setting('holdfast.tokens', true), ''), '[]');
  fence bigint;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT COALESCE(($1).%I, 0)', TG_ARGV[0]) INTO fence USING OLD;
  ELSE
    EXECUTE format('SELECT COALESCE(($1).%I, 0)', TG_ARGV[0]) INTO fence USING NEW;
  END IF;
  IF NOT tokens @> to_jsonb(fence) THEN
    RAISE EXCEPTION 'unfenced % of a row of %: its fence is %, and this transaction has not shown that token', TG_OP, TG_TABLE_NAME, fence
      USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
        HINT = 'Write through postgresGuard: update, upsert, or a transaction, which takes the row''s fence first.';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$;

-- TRUNCATE shows no rows, so no fence of a row can be compared with.
CREATE OR REPLACE FUNCTION holdfast_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'unfenced TRUNCATE of %', TG_TABLE_NAME
    USING ERRCODE = 'check_violation', CONSTRAINT = 'holdfast_fence', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
      HINT = 'SELECT holdfast_unguard(...) first, when no holder can be at work.';
END $$;

-- The table itself, then what inherits from it, partitions too: of a statement on the parent they have the row triggers alone, and one
-- on themselves has none of the parent's statement triggers. `has_own` tells which don't get the parent's row triggers by themselves.
CREATE OR REPLACE FUNCTION holdfast_parts(guarded regclass) RETURNS TABLE (part regclass, has_own boolean) LANGUAGE sql STABLE AS $$
  WITH RECURSIVE parts (id, depth) AS (
    SELECT guarded::oid, 0
    UNION ALL
    SELECT inhrelid, depth + 1 FROM pg_inherits JOIN parts ON inhparent = id
  )
  SELECT id::regclass, bool_or(depth = 0 OR NOT relispartition) FROM parts JOIN pg_class ON pg_class.oid = id
  GROUP BY id ORDER BY min(depth);
$$;

CREATE OR REPLACE FUNCTION holdfast_unguard(guarded regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each regclass;
BEGIN
  FOR each IN SELECT part FROM holdfast_parts(guarded) LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS holdfast_1_shown ON %s', each);
    EXECUTE format('DROP TRIGGER IF EXISTS holdfast_2_unfenced ON %s', each);
    EXECUTE format('DROP TRIGGER IF EXISTS holdfast_3_truncate ON %s', each);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION holdfast_guard_truncate(guarded regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each regclass;
BEGIN
  FOR each IN SELECT part FROM holdfast_parts(guarded) LOOP
    EXECUTE format(
      'CREATE TRIGGER holdfast_3_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE PROCEDURE holdfast_refuse_truncate()',
      each);
  END LOOP;
END $$;

-- Triggers run in the order of their names. With `plain_inserts` a new row needs no token: for tables whose rows are made without a lock.
DROP FUNCTION IF EXISTS holdfast_guard_rows(regclass, name);
CREATE OR REPLACE FUNCTION holdfast_guard_rows(guarded regclass, fence name, plain_inserts boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each regclass;
BEGIN
  PERFORM holdfast_unguard(guarded);
  FOR each IN SELECT part FROM holdfast_parts(guarded) WHERE has_own LOOP
    EXECUTE format(
      'CREATE TRIGGER holdfast_1_shown BEFORE INSERT OR UPDATE OF %I ON %s '
      'FOR EACH ROW EXECUTE PROCEDURE holdfast_row_fence_shown(%L, %L)',
      fence, each, fence, CASE WHEN plain_inserts THEN 'plain_inserts' ELSE '' END);
    EXECUTE format(
      'CREATE TRIGGER holdfast_2_unfenced BEFORE UPDATE OR DELETE ON %s '
      'FOR EACH ROW EXECUTE PROCEDURE holdfast_row_refuse_unfenced(%L)',
      each, fence);
  END LOOP;
  PERFORM holdfast_guard_truncate(guarded);
END $$;

-- Without `key` the whole table belongs to one resource; with it each row belongs to the resource `resource || key`.
CREATE OR REPLACE FUNCTION holdfast_guard_table(guarded regclass, resource text, key name DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each regclass;
BEGIN
  PERFORM holdfast_unguard(guarded);
  IF key IS NULL THEN
    FOR each IN SELECT part FROM holdfast_parts(guarded) LOOP
      EXECUTE format(
        'CREATE TRIGGER holdfast_2_unfenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
        'FOR EACH STATEMENT EXECUTE PROCEDURE holdfast_refuse_untaken(%L)',
        each, resource);
    END LOOP;
  ELSE
    FOR each IN SELECT part FROM holdfast_parts(guarded) WHERE has_own LOOP
      EXECUTE format(
        'CREATE TRIGGER holdfast_2_unfenced BEFORE INSERT OR UPDATE OR DELETE ON %s '
        'FOR EACH ROW EXECUTE PROCEDURE holdfast_refuse_untaken(%L, %L)',
        each, resource, key);
    END LOOP;
    PERFORM holdfast_guard_truncate(guarded);
  END IF;
END $$;
