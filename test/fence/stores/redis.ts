/** The Redis guard behind the interface of the one suite, and the Guard over a register that is kept in Redis. */
import { Guard } from "@holdfast/fence";
import type { FenceRegister, FencedRecord, ReportingOptions } from "@holdfast/fence";
import { redisGuard } from "@holdfast/fence/redis";
import type { GuardedStore, Place, StoreKind, Stored } from "../guarded-store.js";
import { unavailable } from "../guarded-store.js";
import { redisClient, skipWithoutRedis, startRedis } from "../redis-server.js";
import type { TestRedisClient } from "../redis-server.js";

async function start(): Promise<Place> {
  const redis = await startRedis();
  return { address: redis.url, stop: redis.stop, crash: redis.crash };
}

const common = { skip: skipWithoutRedis(), start, crashes: true, remembersRemoved: true };

/** One hash tag for all, so that several resources can change in one step. */
const bodyKey = (resource: string): string => `{notes}:body:${resource}`;
const linesKey = (resource: string): string => `{notes}:lines:${resource}`;

export const redisKeys: StoreKind = {
  ...common,
  kind: "Redis",
  guard: "redis",
  changesSeveral: true,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const client = await redisClient(address);
    const notes = redisGuard(client, reporting);
    return {
      write: (fence, body) => notes.set(fence, bodyKey(fence.resource), body),
      read: (fence) => notes.get(fence, bodyKey(fence.resource)),
      append: async (fence, line) => void (await notes.append(fence, linesKey(fence.resource), [line])),
      remove: async (fence) =>
        void (await notes.write(fence, [
          ["DEL", bodyKey(fence.resource)],
          ["DEL", linesKey(fence.resource)],
        ])),
      writeAll: async (fences, body) =>
        void (await notes.write(
          fences,
          fences.map(({ resource }) => ["SET", bodyKey(resource), body] as const),
        )),
      stored: (resource) => storedIn(client, resource),
      close: async () => closed(client),
    };
  },
};

/** A client whose server was killed is closed already, and says so. */
function closed(client: TestRedisClient): void {
  if (client.isOpen) client.destroy();
}

/** All of it at one moment. */
async function storedIn(client: TestRedisClient, resource: string): Promise<Stored> {
  const script =
    "return {redis.call('GET', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('GET', KEYS[3])}";
  const keys = [bodyKey(resource), linesKey(resource), `holdfast:fence:{notes}:${resource}`];
  const [body, lines, token] = (await client.eval(script, { keys, arguments: [] })) as [
    string | null,
    string[],
    string | null,
  ];
  return { body, lines, token: token === null ? null : Number(token) };
}

interface Note {
  readonly body: string | null;
  readonly lines: readonly string[];
}

/** The record as text; its version is the text itself. */
function registerIn(client: TestRedisClient): FenceRegister<Note, string> {
  const script =
    "if redis.call('GET', KEYS[1]) ~= (ARGV[1] ~= '' and ARGV[1]) then return 0 end redis.call('SET', KEYS[1], ARGV[2]) return 1";
  return {
    async read(resource) {
      const text = (await client.sendCommand(["GET", `note:${resource}`])) as string | null;
      return text === null ? null : { record: JSON.parse(text) as FencedRecord<Note>, version: text };
    },
    async compareAndSet(resource, expected, record) {
      const words = [expected ?? "", JSON.stringify(record)];
      return (await client.eval(script, { keys: [`note:${resource}`], arguments: words })) === 1;
    },
  };
}

export const redisRegister: StoreKind = {
  ...common,
  kind: "a register of one's own",
  guard: "register",
  changesSeveral: false,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const client = await redisClient(address);
    const register = registerIn(client);
    const notes = new Guard(register, reporting);
    const empty: Note = { body: null, lines: [] };
    return {
      write: (fence, body) => notes.write(fence, { ...empty, body }),
      read: async (fence) => (await notes.read(fence))?.body ?? null,
      append: async (fence, line) => {
        await notes.update(fence, (note) => ({ ...(note ?? empty), lines: [...(note?.lines ?? []), line] }));
      },
      remove: (fence) => notes.remove(fence),
      writeAll: unavailable,
      stored: async (resource) => {
        const found = await register.read(resource);
        return { ...empty, ...found?.record.value, token: found?.record.token ?? null };
      },
      close: async () => closed(client),
    };
  },
};
