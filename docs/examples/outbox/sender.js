// Sends what lies in the outbox, and ends: node sender.js, as often as you like, in as many copies as you like.
// It takes no lock and shows no fence: the receiver can't compare tokens. A message may go out twice, when this process dies between the
// answer and the UPDATE, or is paused there while another copy runs. Its key makes that harmless.
import pg from "pg";

const receiver = process.env.RECEIVER ?? "http://127.0.0.1:8080/charges";
const pool = new pg.Pool({ max: 1 });
try {
  for (;;) {
    const { rows } = await pool.query("SELECT key, body FROM outbox WHERE sent_at IS NULL ORDER BY position LIMIT 100");
    if (rows.length === 0) break;
    for (const { key, body } of rows) {
      await send(key, body);
      await pool.query("UPDATE outbox SET sent_at = now() WHERE key = $1", [key]);
    }
  }
} finally {
  await pool.end();
}

async function send(key, body) {
  const answer = await fetch(receiver, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  if (!answer.ok) throw new Error(`the receiver answered ${answer.status}: it stays in the outbox`);
}
