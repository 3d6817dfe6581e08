import assert from "node:assert/strict";
import { test } from "node:test";

import { Guard, StaleTokenError, UnknownOutcomeError } from "../src/index.js";
import type { FenceRegister, FencedRecord, GuardOptions, VersionedRecord } from "../src/index.js";

const resource = "doc:42";

/** A store in memory. `beforeSet` runs between a guard's look and its write: other writers and lost answers come from there. */
class MemoryRegister implements FenceRegister<string, number> {
  readonly stored = new Map<string, VersionedRecord<string, number>>();
  sets = 0;
  beforeSet: (record: FencedRecord<string>) => void | Promise<void> = () => {};
  afterSet: (isStored: boolean) => boolean | Error = (isStored) => isStored;
  failRead: Error | null = null;

  async read(name: string): Promise<VersionedRecord<string, number> | null> {
    if (this.failRead !== null) throw this.failRead;
    return this.stored.get(name) ?? null;
  }

  async compareAndSet(name: string, expected: number | null, record: FencedRecord<string>): Promise<boolean | Error> {
    this.sets += 1;
    await this.beforeSet(record);
    const isStored = (this.stored.get(name)?.version ?? null) === expected;
    if (isStored) this.put(record, name);
    return this.afterSet(isStored);
  }

  put(record: FencedRecord<string>, name = resource): void {
    this.stored.set(name, { record, version: (this.stored.get(name)?.version ?? 0) + 1 });
  }

  get value(): string | null | undefined {
    return this.stored.get(resource)?.record.value;
  }
}

function guardOver(register: MemoryRegister, options: GuardOptions = {}): Guard<string> {
  return new Guard(register, options);
}

/** Another holder's write, once. */
function another(register: MemoryRegister, token: number, value: string | null = "theirs"): void {
  register.beforeSet = () => {
    register.beforeSet = () => {};
    register.put({ token, writeId: `other ${token}`, value });
  };
}

test("a newer holder that comes between the look and the write is seen, and the late one is refused", async () => {
  const register = new MemoryRegister();
  const guard = guardOver(register);
  another(register, 34);
  await assert.rejects(
    guard.write({ resource, token: 33 }, "mine"),
    (error) => error instanceof StaleTokenError && error.highest === 34 && error.resource === resource,
  );
  assert.equal(register.value, "theirs");
});

test("an older holder that comes between is not lost: the change is made again of what it left", async () => {
  const register = new MemoryRegister();
  const guard = guardOver(register);
  await guard.write({ resource, token: 30 }, "a");
  another(register, 31, "ab");
  const seen: (string | null)[] = [];
  const value = await guard.update({ resource, token: 33 }, (current) => {
    seen.push(current);
    return `${current}+`;
  });
  assert.deepEqual([value, register.value, seen], ["ab+", "ab+", ["a", "ab"]]);
});

test("a read raises the register by one write, and by none when it stands there", async () => {
  const register = new MemoryRegister();
  const guard = guardOver(register);
  await guard.write({ resource, token: 5 }, "five");
  assert.equal(await guard.read({ resource, token: 7 }), "five");
  assert.deepEqual([register.sets, register.stored.get(resource)?.record.token], [2, 7]);
  assert.equal(await guard.read({ resource, token: 7 }), "five");
  assert.equal(register.sets, 2);
  await guard.remove({ resource, token: 7 });
  assert.equal(await guard.read({ resource, token: 7 }), null);
  await assert.rejects(guard.read({ resource, token: 6 }), { code: "stale_token" });
});

test("a lost answer is looked for in the store: done is done, and what can't be known is told", async () => {
  const reset = new Error("read ECONNRESET");
  const lost = (): never => {
    throw reset;
  };
  const isUnknown = (error: unknown): boolean =>
    error instanceof UnknownOutcomeError && error.cause === reset && !error.retryable && error.resource === resource;

  const done = new MemoryRegister();
  done.afterSet = lost;
  await guardOver(done).write({ resource, token: 5 }, "mine");
  assert.deepEqual([done.value, done.sets], ["mine", 1]);

  const notDone = new MemoryRegister();
  notDone.beforeSet = lost;
  await assert.rejects(guardOver(notDone).write({ resource, token: 5 }, "mine"), isUnknown);

  const overwritten = new MemoryRegister();
  overwritten.afterSet = () => {
    overwritten.put({ token: 5, writeId: "other", value: "theirs" });
    throw reset;
  };
  await assert.rejects(guardOver(overwritten).write({ resource, token: 5 }, "mine"), isUnknown);

  const gone = new MemoryRegister();
  gone.afterSet = () => {
    gone.failRead = new Error("still gone");
    throw reset;
  };
  await assert.rejects(guardOver(gone).write({ resource, token: 5 }, "mine"), isUnknown);
});

test("what the store surely refused comes as it is", async () => {
  const register = new MemoryRegister();
  const full = new Error("disk full");
  register.afterSet = () => full;
  await assert.rejects(guardOver(register).write({ resource, token: 5 }, "mine"), full);
});

test("an error of the change comes as it is and writes nothing", async () => {
  const register = new MemoryRegister();
  const problem = new Error("changed my mind");
  await assert.rejects(
    guardOver(register).update({ resource, token: 5 }, () => Promise.reject(problem)),
    problem,
  );
  assert.equal(register.sets, 0);
});

test("a register that never lets anybody write, or holds no token, is told", async () => {
  const register = new MemoryRegister();
  register.afterSet = () => false;
  const guard = guardOver(register);
  const rounds = Math.random;
  Math.random = () => 0;
  try {
    await assert.rejects(guard.write({ resource, token: 5 }, "x"), { code: "incompatible" });
  } finally {
    Math.random = rounds;
  }
  assert.equal(register.sets, 1_000);
  for (const token of [0, 1.5, Number.NaN, 2 ** 53, "9" as unknown as number]) {
    const odd = new MemoryRegister();
    odd.put({ token, writeId: "x", value: "x" });
    await assert.rejects(guardOver(odd).write({ resource, token: 5 }, "x"), { code: "incompatible" }, String(token));
    assert.equal(odd.sets, 0);
  }
});

test("odd arguments are refused by name before the store is asked", async () => {
  const register = new MemoryRegister();
  const guard = guardOver(register);
  const lock = { resource, token: 5 };
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.resource", () => guard.write({ token: 5 }, "x")],
    ["lock.token", () => guard.read({ resource, token: 0 })],
    ["value", () => guard.write(lock, null as unknown as string)],
    ["change", () => guard.update(lock, "x" as unknown as () => string)],
    ["change", () => guard.update(lock, () => undefined as unknown as string)],
  ];
  for (const [argument, call] of calls) await assert.rejects(call(), { code: "invalid_argument", argument });
  assert.equal(register.sets, 0);
  const makes: readonly (readonly [string, () => unknown])[] = [
    ["register", () => new Guard({} as FenceRegister<string>)],
    ["register", () => new Guard(null as unknown as FenceRegister<string>)],
    ["options.name", () => guardOver(register, { name: "" })],
    ["options.kind", () => guardOver(register, { kind: "x" } as GuardOptions)],
    ["options.onStale", () => guardOver(register, { onStale: 1 as unknown as () => void })],
  ];
  for (const [argument, make] of makes) assert.throws(make, { code: "invalid_argument", argument });
});
