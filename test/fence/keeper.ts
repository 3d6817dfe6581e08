/** Servers that end with this process, however it ends: harness/postgres-keeper.ts holds the other end of a pipe. */
import { spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "../harness/postgres-server.js";
import type { Owner } from "../harness/postgres-server.js";
import type { KeeperOrder } from "../harness/postgres.js";

export { freePort } from "../harness/postgres-server.js";

export interface Keeper {
  end(): void;
  /** As a crash does. */
  kill(): void;
  ended(): Promise<void>;
  /** The server's last words when it has ended, else null. */
  lastWords(): string | null;
}

/**
 * Starts a server, as another user if `owner` is given. Its files lie elsewhere: the keeper removes only the folder of its own log, so that
 * a crash can be survived.
 */
export function keep(command: string, words: readonly string[], owner: Owner | null = null): Keeper {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-server-log-"));
  if (owner !== null) chownSync(folder, owner.uid, owner.gid);
  const order: KeeperOrder = { command, arguments: words, owner, folder };
  const script = fileURLToPath(new URL("../harness/postgres-keeper.js", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(order)], {
    detached: true,
    env: cleanEnvironment(),
    stdio: ["pipe", "pipe", "inherit"],
  });
  let said = "";
  let isOver = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdin.on("error", () => {});
  const over = new Promise<void>((resolve) => {
    child.once("close", () => {
      isOver = true;
      resolve();
    });
  });
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) (pipe as Socket).unref();
  return {
    end: () => void child.stdin.end(),
    kill: () => void child.stdin.write("kill"),
    ended: async () => {
      // Nothing else may keep this process running while it waits.
      child.ref();
      await over;
    },
    lastWords: () => (isOver ? said : null),
  };
}

/** The program's path, or null. Debian keeps servers in sbin, which isn't in everybody's PATH. */
export function programPath(name: string): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"].filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}
