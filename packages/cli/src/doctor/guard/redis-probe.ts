/** Redis for `doctor --guard`: scratch keys, and whether the server may throw fences away. */
import { redisGuard } from "@holdfast/fence/redis";
import type { NodeRedisClient } from "@holdfast/fence/redis";
import type { Finding } from "../finding.js";
import { ok, problem, warning } from "../finding.js";
import type { ProbedStore } from "./examine-guard.js";
import type { ProbePlace } from "./probe-store.js";

interface Client extends NodeRedisClient {
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  sendCommand(words: string[]): Promise<unknown>;
}

export async function probeRedis({ url, scratch, driver, timeoutMs }: ProbePlace): Promise<ProbedStore> {
  const { createClient } = driver as { readonly createClient: (options: object) => Client };
  const socket = { reconnectStrategy: false, connectTimeout: timeoutMs };
  const client = createClient({ url, disableOfflineQueue: true, socket });
  client.on("error", () => {}); // told by the command that meets it
  await client.connect();
  const key = `holdfast:doctor:{${scratch}}`;
  const fence = `holdfast:fence:{${scratch}}:${scratch}`;
  const guard = redisGuard(client);
  try {
    const version = /^redis_version:(\S+)/m.exec(String(await client.sendCommand(["INFO", "server"])))?.[1];
    return {
      name: `Redis ${version ?? "of unknown version"}`,
      probes: [
        {
          form: `a guarded key (${key})`,
          write: (token, text) => guard.set({ resource: scratch, token }, key, text),
          stored: async () => {
            const [text, token] = (await client.sendCommand(["MGET", key, fence])) as (string | null)[];
            return { text: text ?? null, token: token ?? null };
          },
        },
      ],
      settings: await settingsOf(client),
      close: async () => {
        await client.sendCommand(["DEL", key, fence]);
        client.destroy();
      },
    };
  } catch (error) {
    client.destroy();
    throw error;
  }
}

async function settingsOf(client: Client): Promise<readonly Finding[]> {
  const setting = async (name: string): Promise<string | null> => {
    // Many hosted servers don't tell.
    const answer = await client.sendCommand(["CONFIG", "GET", name]).catch(() => null);
    // A list in RESP2, a map in RESP3.
    const value: unknown = Array.isArray(answer) ? answer[1] : (answer as Record<string, unknown> | null)?.[name];
    return typeof value === "string" ? value : null;
  };
  return [
    evictionFinding(await setting("maxmemory-policy")),
    durableFinding(await setting("appendonly"), await setting("appendfsync")),
  ];
}

function evictionFinding(policy: string | null): Finding {
  if (policy === null)
    return ok("eviction", "the server doesn't tell its maxmemory-policy: see that it isn't one of allkeys-*");
  if (!policy.startsWith("allkeys-")) return ok("eviction", `fences stay: maxmemory-policy is ${policy}`);
  return problem("eviction", {
    node: null,
    seen: `maxmemory-policy is ${policy}`,
    why: "When memory is short the server throws fences away, and lets an old holder in.",
    mend: "set it to noeviction, or to one of volatile-*: docs/fencing.md",
  });
}

function durableFinding(appendOnly: string | null, fsync: string | null): Finding {
  if (appendOnly === null) return ok("durable", "the server doesn't tell whether writes outlive a crash");
  if (appendOnly === "yes" && fsync === "always") return ok("durable", "a write that was acknowledged is on the disk");
  return warning("durable", {
    node: null,
    seen: appendOnly === "yes" ? `appendfsync is ${fsync}` : "appendonly is off",
    why: "After a crash the last writes are forgotten, and their fences with them: an old holder may get in.",
    mend: "appendonly yes and appendfsync always, or a database that waits for its disk, where that isn't good enough",
  });
}
