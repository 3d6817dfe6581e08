// Who is paid: node receiver.js, on PORT (8080). It remembers the key in the transaction that has the effect, so that however often a
// message comes, it is applied once. Keys must be kept for longer than anybody may send again.
import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import pg from "pg";

const pool = new pg.Pool();
pool.on("error", (error) => console.error(error.message)); // an idle connection was lost: the next request opens another

const server = createServer((request, response) => {
  charge(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error.message);
      response.writeHead(500).end(); // not known to have been applied: the sender sends it again
    },
  );
});
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1");
await once(server, "listening");
console.log("listening");

async function charge(request) {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return 400;
  const body = await json(request);
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const first = await client.query("INSERT INTO received (key, body) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      key,
      body,
    ]);
    if (first.rowCount === 1)
      await client.query("UPDATE takings SET cents = cents + $1 WHERE currency = 'EUR'", [body.cents]);
    await client.query("COMMIT");
    client.release();
    return first.rowCount === 1 ? 201 : 200;
  } catch (error) {
    client.release(true); // closing the connection rolls back
    throw error;
  }
}
