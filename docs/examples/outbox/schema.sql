-- Yours: the orders, the outbox, and the table of fences (the same as @holdfast/fence/sql/postgres/001-fence-table.sql).
CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'open');
CREATE TABLE items ("order" integer NOT NULL REFERENCES orders, cents integer NOT NULL);
CREATE TABLE outbox (
  key text PRIMARY KEY,                        -- the idempotency key: what the message is about, never when or by whom it was sent
  body jsonb NOT NULL,
  position bigint GENERATED ALWAYS AS IDENTITY,
  sent_at timestamptz
);
CREATE TABLE IF NOT EXISTS holdfast_fences (
  resource text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL CHECK (token >= 1)
);

-- The receiver's, elsewhere in earnest: what was received, and what it did.
CREATE TABLE received (key text PRIMARY KEY, body jsonb NOT NULL);
CREATE TABLE takings (currency text PRIMARY KEY, cents bigint NOT NULL);
INSERT INTO takings VALUES ('EUR', 0);
