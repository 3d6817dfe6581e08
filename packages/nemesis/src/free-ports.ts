/**
 * Ports for servers that are started later, and anew after they were killed. The system takes the local ports of connections from a range of
 * its own: one out of that may be gone by then, so these lie below it.
 */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import type { Server } from "node:net";

/** Below are the well-known services of many machines. */
const lowest = 20_000;
/** Linux's default, and below that of all others. */
const usualRangeFrom = 32_768;
/** A range that is set so low leaves no room: then any free port has to do. */
const roomMin = 1_000;

/** They were free a moment ago, and differ. Rejects when there are not so many. */
export async function freePorts(host: string, count: number): Promise<readonly number[]> {
  const to = rangeFrom();
  const room = to - lowest >= roomMin ? { from: lowest, to } : { from: to, to: 2 ** 16 };
  const size = room.to - room.from;
  const start = randomInt(size);
  const held: { readonly port: number; readonly server: Server }[] = [];
  try {
    for (let tried = 0; held.length < count; tried += 1) {
      if (tried === size) throw new Error(`there are no ${count} free ports from ${room.from} to ${room.to - 1}`);
      const port = room.from + ((start + tried) % size);
      const server = await listening(host, port);
      if (server !== null) held.push({ port, server });
    }
    return held.map(({ port }) => port);
  } finally {
    await Promise.all(held.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  }
}

/** Null: somebody else listens there. */
function listening(host: string, port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" || error.code === "EACCES") resolve(null);
      else reject(error);
    });
    server.listen(port, host, () => resolve(server));
  });
}

/** The first port that the system gives to connections. */
export function rangeFrom(): number {
  try {
    return Number(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim().split(/\s+/)[0]);
  } catch {
    return usualRangeFrom;
  }
}
