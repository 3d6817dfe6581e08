/** Sessions of virtual clients. */
import { encodeCommand } from "@holdfast/wire";
import type { VirtualClient } from "./virtual-cluster.js";

/** A session's key, another for each number. */
export function key(at: number): string {
  return at.toString(16).padStart(32, "0");
}

/** Opens the session with that key, and resolves to its id. */
export async function openSession(client: VirtualClient, at: number, ttlMs: number, info = ""): Promise<number> {
  client.sendAll({
    kind: "command",
    payload: encodeCommand({ kind: "openSession", key: key(at), ttlMs, info }),
  });
  return (await client.expect("sessionOpened", (told) => told.key === key(at))).session;
}
