/**
 * Runs one server and ends it when standard input closes, which it does however the process at its other end died. A program of its
 * own: see keep() in postgres.ts. When the server ends by itself, its last words go to standard output.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import type { KeeperOrder } from "./postgres.js";

const order = JSON.parse(process.argv[2] ?? "") as KeeperOrder;
const logPath = join(order.folder, "server.log");
const log = openSync(logPath, "a");
const server = spawn(order.command, [...order.arguments], {
  cwd: order.folder,
  stdio: ["ignore", log, log],
  ...order.owner,
});
closeSync(log);

server.once("error", (error) => finish(error.message));
server.once("exit", () => finish(readFileSync(logPath, "utf8").slice(-2_000)));

// SIGQUIT is PostgreSQL's immediate shutdown: nothing here is worth a checkpoint.
process.stdin.once("close", () => server.kill("SIGQUIT"));
// Whatever comes in asks for a crash.
process.stdin.on("data", () => server.kill("SIGKILL"));

function finish(words: string): void {
  rmSync(order.folder, { recursive: true, force: true });
  process.stdout.write(words, () => process.exit(0));
}
