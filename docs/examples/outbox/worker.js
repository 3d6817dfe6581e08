// Charges one order: node worker.js ORDER
// The lock keeps others from doing the same work. The fence keeps a worker that was paused too long from writing. The outbox row is
// written in the same transaction as the order's new state: both stand, or neither.
import { connect } from "@holdfast/client";
import { postgresFences } from "@holdfast/fence/postgres";
import pg from "pg";

const order = Number(process.argv[2]);
const pool = new pg.Pool({ max: 1 });
const fences = postgresFences(pool);
const holdfast = await connect();
try {
  await holdfast.request(`order:${order}`, async (lock) => {
    const cents = await amountOf(order); // may take long: that is what the lock is for
    await fences.transaction(lock, async (tx) => {
      const charged = await tx.query(
        "UPDATE orders SET state = 'charged' WHERE id = $1 AND state = 'open' RETURNING id",
        [order],
      );
      if (charged.rows.length === 0) return; // somebody has done it before
      const body = JSON.stringify({ order, cents });
      await tx.query("INSERT INTO outbox (key, body) VALUES ($1, $2)", [`charge:${order}`, body]);
    });
  });
} finally {
  await holdfast.close();
  await pool.end();
}

async function amountOf(id) {
  const { rows } = await pool.query('SELECT COALESCE(sum(cents), 0)::integer AS cents FROM items WHERE "order" = $1', [
    id,
  ]);
  return rows[0].cents;
}
