import assert from "node:assert/strict";
import { test } from "node:test";

import { StaleTokenError, UnknownOutcomeError } from "../../src/index.js";
import { s3Commands, s3Guard } from "../../src/s3.js";
import type { S3Guard, S3GuardOptions, S3Operations } from "../../src/s3.js";
import { MemoryS3, S3Failure } from "./memory-s3.js";
import type { Fault } from "./memory-s3.js";

const lock = { resource: "doc:42", token: 33 };
const newer = { resource: "doc:42", token: 34 };
const pointerKey = "holdfast/doc_3a42/fence";

function guardOver(store: MemoryS3, options: Partial<S3GuardOptions> = {}): S3Guard {
  return s3Guard(store, { bucket: "notes", ...options });
}

/** What a pointer says but for its random ids. */
function pointerIn(store: MemoryS3): Record<string, unknown> {
  return JSON.parse(store.text(pointerKey) ?? "") as Record<string, unknown>;
}

/** These puts of the pointer fail, one after the other; `between` happens after each failure. */
function failing(store: MemoryS3, faults: readonly Fault[], between: () => void = () => {}): void {
  const left = [...faults];
  let hasFailed = false;
  store.before = (operation, key) => {
    if (hasFailed) between();
    hasFailed = false;
    if (operation !== "put" || key !== pointerKey) return null;
    const fault = left.shift() ?? null;
    hasFailed = fault !== null;
    return fault;
  };
}

function dataKeys(store: MemoryS3): string[] {
  return [...store.objects.keys()].filter((key) => key !== pointerKey);
}

test("the body of the pointer holds fence, random id and the data's key; each write has an object of its own", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(lock, "one");
  const first = pointerIn(store);
  const name = `${"33".padStart(16, "0")}-${String(first["writeId"])}`;
  const common = { holdfast: 1, resource: "doc:42", token: 33 };
  assert.deepEqual(first, { ...common, writeId: first["writeId"], number: 1, recent: [], data: { name, bytes: 3 } });
  assert.deepEqual(dataKeys(store), [`holdfast/doc_3a42/data/${name}`], "nothing else is left");
  const before = store.objects.get(pointerKey)?.etag;
  await guard.write(lock, "one");
  assert.notEqual(store.objects.get(pointerKey)?.etag, before, "equal bytes under an equal token are another pointer");
  assert.deepEqual(pointerIn(store)["recent"], [first["writeId"]]);
  assert.equal(dataKeys(store).length, 1, "the replaced data is deleted");
  assert.equal(await guard.read(newer).then(String), "one");
  assert.deepEqual(
    [pointerIn(store)["token"], pointerIn(store)["number"], dataKeys(store).length],
    [34, 3, 1],
    "a read raises the pointer, and copies nothing",
  );
  await guard.remove(newer);
  assert.deepEqual([pointerIn(store)["data"], dataKeys(store)], [null, []]);
  await assert.rejects(guard.write(lock, "late"), StaleTokenError);
  assert.equal(await guard.readNewest("doc:42"), null);
});

test("a refused token puts nothing at all", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(newer, "newer");
  const puts = store.puts.length;
  const objects = new Map(store.objects);
  await assert.rejects(guard.write(lock, "late"), StaleTokenError);
  await assert.rejects(
    guard.update(lock, () => "late"),
    StaleTokenError,
  );
  await assert.rejects(guard.read(lock), StaleTokenError);
  await assert.rejects(guard.remove(lock), StaleTokenError);
  assert.deepEqual([store.puts.length, store.objects], [puts, objects]);
});

test("the form of ETags is found out once for each guard, whatever the store gives and wants", async () => {
  for (const givesEtags of ["quoted", "bare"] as const) {
    for (const comparesEtags of ["quoted", "bare"] as const) {
      const store = new MemoryS3({ givesEtags, comparesEtags });
      const guard = guardOver(store);
      await Promise.all([guard.write(lock, "a"), guard.write({ resource: "b", token: 1 }, "b")]);
      await guard.write(newer, "c");
      const etag = /^[0-9a-f]{32}$/;
      const last = store.puts.at(-1)?.IfMatch ?? "";
      assert.match(comparesEtags === "bare" ? last : last.slice(1, -1), etag, `${givesEtags} ${comparesEtags}`);
      const checks = store.puts.filter(({ Key }) => Key.startsWith("holdfast/_check/"));
      assert.equal(new Set(checks.map(({ Key }) => Key)).size, 1, "once");
      assert.deepEqual(
        [...store.objects.keys()].filter((key) => key.includes("_check")),
        [],
      );
    }
  }
});

test("a store or client that drops a condition is refused before anything is written", async () => {
  const stores = [
    new MemoryS3({ comparesEtags: "never" }),
    new MemoryS3({ ignoresIfNoneMatch: true }),
    new MemoryS3({ comparesEtags: "never", ignoresIfNoneMatch: true }),
  ];
  const expected = { code: "incompatible", resource: "s3://notes" };
  for (const store of stores) {
    await assert.rejects(guardOver(store).write(lock, "x"), expected);
    await assert.rejects(guardOver(store).read(lock), expected);
    assert.deepEqual([...store.objects.keys()], []);
  }
  const none = new MemoryS3();
  none.before = (operation) => (operation === "put" ? { status: 501, effect: "none" } : null);
  await assert.rejects(guardOver(none).write(lock, "x"), expected);
});

test("a store that is out of order while it is tried out is tried again, and a failure isn't remembered", async () => {
  const store = new MemoryS3({ comparesEtags: "bare" });
  const guard = guardOver(store);
  let failures = 0;
  store.before = (operation) => {
    failures += operation === "put" ? 1 : 0;
    return operation === "put" && failures <= 40 ? { status: 503, effect: failures % 2 === 0 ? "done" : "none" } : null;
  };
  await assert.rejects(guard.write(lock, "x"), (error) => error instanceof S3Failure);
  failures = 36;
  await guard.write(lock, "x");
  assert.equal(String(await guard.readNewest("doc:42")), "x");
  // 412 from a client that has sent a request twice doesn't say that the store refuses quotes.
  const twice = new MemoryS3();
  let puts = 0;
  twice.before = (operation) => {
    puts += operation === "put" ? 1 : 0;
    return operation === "put" && puts === 4 ? { status: 412, effect: "done", attempts: 2 } : null;
  };
  await guardOver(twice).write(lock, "x");
  assert.match(twice.puts.at(-1)?.Key ?? "", /fence$/);
});

test("409, 412, 5xx and a lost answer are looked up: done is done, once, and not done is done again", async () => {
  for (const status of [409, 412, 429, 500, 503, null]) {
    for (const effect of ["none", "done"] as const) {
      const what = `${status} ${effect}`;
      for (const isFirst of [true, false]) {
        const store = new MemoryS3();
        const guard = guardOver(store);
        if (!isFirst) await guard.write(lock, "0");
        failing(store, [{ status, effect }]);
        await guard.update(newer, (current) => `${current ?? ""}+`);
        assert.equal(String(await guard.readNewest("doc:42")), isFirst ? "+" : "0+", what);
        assert.equal(dataKeys(store).length, 1, what);
        assert.equal(pointerIn(store)["number"], isFirst ? 1 : 2, what);
      }
    }
  }
});

test("done, and replaced before the look: the pointers that came since tell of it", async () => {
  for (const others of [1, 5, 64]) {
    const store = new MemoryS3();
    const guard = guardOver(store);
    await guard.write(lock, "0");
    failing(store, [{ status: 500, effect: "done" }], () => replace(store, others));
    assert.equal(String(await guard.update(lock, (current) => `${String(current)}+`)), "0+");
    assert.equal(pointerIn(store)["number"], 2 + others);
  }
});

test("not done, and another came: it can't come any more, so it is done anew on what is there", async () => {
  for (const others of [1, 5, 64]) {
    const store = new MemoryS3();
    const guard = guardOver(store);
    await guard.write(lock, "0");
    const name = String((pointerIn(store)["data"] as { name: string }).name);
    failing(store, [{ status: 500, effect: "late" }], () => replace(store, others, { name, bytes: 1 }));
    assert.equal(String(await guard.update(lock, (current) => `${String(current)}+`)), "0+");
    store.arrive();
    assert.equal(pointerIn(store)["number"], 2 + others);
    assert.equal(String(await guard.readNewest("doc:42")), "0+");
  }
});

test("what the pointers no longer tell of, and what never gets an answer, is an unknown outcome", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(lock, "0");
  failing(store, [{ status: 500, effect: "done" }], () => replace(store, 65));
  const forgotten = await guard.write(lock, "1").catch((error: unknown) => error);
  assert.ok(forgotten instanceof UnknownOutcomeError && forgotten.cause instanceof S3Failure, String(forgotten));
  failing(
    store,
    Array.from({ length: 6 }, () => ({ status: null, effect: "none" }) as const),
  );
  const silent = await guard.write(lock, "1").catch((error: unknown) => error);
  assert.ok(silent instanceof UnknownOutcomeError && silent.cause instanceof S3Failure, String(silent));
  // The data of a write that may still come stays.
  assert.ok(dataKeys(store).length >= 1);
});

test("a refusal comes as it is and leaves nothing, unless the client had sent it before", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(lock, "0");
  const objects = new Map(store.objects);
  for (const status of [400, 403, 404]) {
    failing(store, [{ status, effect: "none" }]);
    await assert.rejects(guard.write(lock, "1"), (error) => error instanceof S3Failure);
    assert.deepEqual(store.objects, objects);
  }
  failing(store, [{ status: 403, effect: "done", attempts: 2 }]);
  await guard.write(lock, "1");
  assert.equal(String(await guard.readNewest("doc:42")), "1");
  store.before = () => {
    throw new S3Failure("NoSuchBucket", 404);
  };
  await assert.rejects(guard.read(lock), { name: "NoSuchBucket" }, "a missing bucket is no missing resource");
});

test("garbage goes, the content stays, and a write that is under way is made again", async () => {
  const store = new MemoryS3({ pageSize: 2 });
  const guard = guardOver(store);
  assert.equal(await guard.removeGarbage("doc:42"), 0);
  await guard.write(lock, "0");
  assert.equal(await guard.removeGarbage("doc:42"), 0);
  assert.equal(pointerIn(store)["number"], 1, "without garbage the pointer isn't touched");
  for (let orphan = 1; orphan <= 5; orphan += 1) await guard.write({ resource: "other", token: orphan }, "other");
  for (let orphan = 1; orphan <= 5; orphan += 1) {
    const Key = `holdfast/doc_3a42/data/orphan ${orphan}`;
    await store.putObject({ Bucket: "notes", Key, Body: Buffer.from("x") });
  }
  const removed: number[] = [];
  let isSwept = false;
  store.before = async (operation, key) => {
    // The writer has put its data and is about to name it: the garbage is taken away from under it.
    if (operation === "put" && key === pointerKey && !isSwept) {
      isSwept = true;
      removed.push(await guardOver(store).removeGarbage("doc:42"));
    }
    return null;
  };
  await guard.update(newer, (current) => `${String(current)}+`);
  assert.deepEqual(removed, [6]);
  assert.equal(String(await guard.readNewest("doc:42")), "0+");
  assert.equal(dataKeys(store).filter((key) => key.includes("doc_3a42")).length, 1);
  assert.equal(String(await guard.readNewest("other")), "other");
});

test("data that is replaced under a reader is looked for anew; data that is gone is damage", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(lock, "0");
  let hasCome = false;
  store.before = async (operation, key) => {
    if (operation === "get" && key.includes("/data/") && !hasCome) {
      hasCome = true;
      await guardOver(store).write(lock, "1");
    }
    return null;
  };
  assert.equal(String(await guard.readNewest("doc:42")), "1");
  hasCome = false;
  assert.equal(String(await guard.update(lock, (current) => `${String(current)}+`)), "1+");
  const [data = ""] = dataKeys(store);
  store.objects.delete(data);
  for (const call of [() => guard.readNewest("doc:42"), () => guard.read(lock), () => guard.update(lock, () => "x")]) {
    await assert.rejects(call(), { code: "incompatible", resource: "doc:42" });
  }
  await guard.write(lock, "mended");
  assert.equal(String(await guard.readNewest("doc:42")), "mended");
});

test("an object that is no pointer of this resource is an error and no hole", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  await guard.write(lock, "0");
  const whole = pointerIn(store);
  const odd = ["", "{", "null", "5", "[]", ...odder(whole)];
  for (const text of odd) {
    store.objects.set(pointerKey, { body: Buffer.from(text), etag: "e" });
    for (const call of [() => guard.write(newer, "x"), () => guard.read(newer), () => guard.readNewest("doc:42")]) {
      await assert.rejects(call(), { code: "incompatible", resource: "doc:42" }, text);
    }
  }
});

function odder(whole: Record<string, unknown>): string[] {
  const rows: readonly object[] = [
    { holdfast: 2 },
    { resource: "Doc:42" },
    { token: "33" },
    { writeId: 5 },
    { number: 1.5 },
    { recent: null },
    { data: undefined },
    { data: { name: "x" } },
  ];
  return rows.map((row) => JSON.stringify({ ...whole, ...row }));
}

test("odd arguments are refused by name before anything is sent", async () => {
  const store = new MemoryS3();
  const guard = guardOver(store);
  const rows: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.resource", () => guard.write({ token: 5 }, "x")],
    ["lock.resource", () => guard.read({ token: 5 })],
    ["lock.token", () => guard.remove({ resource: "a", token: 0 })],
    ["content", () => guard.write(lock, 5 as unknown as string)],
    ["change", () => guard.update(lock, "x" as unknown as () => string)],
    ["resource", () => guard.readNewest("")],
    ["resource", () => guard.removeGarbage("\ud800")],
  ];
  for (const [argument, call] of rows) await assert.rejects(call(), { code: "invalid_argument", argument }, argument);
  await assert.rejects(
    guard.update(lock, () => 5 as unknown as string),
    { argument: "change" },
  );
  assert.deepEqual(store.puts, []);
  const makes: readonly (readonly [string, unknown, object])[] = [
    ["client", null, { bucket: "b" }],
    ["client", { ...operations, listObjectsV2: undefined }, { bucket: "b" }],
    ["options.bucket", operations, {}],
    ["options.prefix", operations, { bucket: "b", prefix: "x".repeat(513) }],
    ["options.prefix", operations, { bucket: "b", prefix: "\ud800" }],
    ["options.onStale", operations, { bucket: "b", onStale: 1 }],
    ["options.Bucket", operations, { bucket: "b", Bucket: "b" }],
  ];
  for (const [argument, client, options] of makes) {
    assert.throws(() => s3Guard(client as S3Operations, options as S3GuardOptions), { argument });
  }
});

const none = async (): Promise<never> => {
  throw new Error("not to be called");
};
const operations = { getObject: none, putObject: none, deleteObject: none, listObjectsV2: none };

test("a bare client sends commands", async () => {
  const store = new MemoryS3();
  const commands = {
    GetObjectCommand: commandOf((input) => store.getObject(input as never)),
    PutObjectCommand: commandOf((input) => store.putObject(input as never)),
    DeleteObjectCommand: commandOf((input) => store.deleteObject(input as never)),
    ListObjectsV2Command: commandOf((input) => store.listObjectsV2(input as never)),
  };
  const client = { send: (command: { run(): Promise<unknown> }) => command.run() };
  const guard = s3Guard(s3Commands(client, commands), { bucket: "notes" });
  await guard.write(newer, "x");
  await assert.rejects(guard.write(lock, "late"), StaleTokenError);
  assert.equal(await guard.removeGarbage("doc:42"), 0);
  assert.equal(String(await guard.read(newer)), "x");
  assert.throws(() => s3Commands({} as typeof client, commands), { argument: "client" });
  assert.throws(() => s3Commands(client, { ...commands, PutObjectCommand: 5 as never }), {
    argument: "commands.PutObjectCommand",
  });
});

function commandOf(send: (input: object) => Promise<unknown>): new (input: object) => { run(): Promise<unknown> } {
  return class {
    readonly #input: object;
    constructor(input: object) {
      this.#input = input;
    }
    run(): Promise<unknown> {
      return send(this.#input);
    }
  };
}

/** So many writes of others, each replacing the one before. */
function replace(store: MemoryS3, count: number, data: unknown = null): void {
  for (let at = 1; at <= count; at += 1) {
    const { writeId, number, recent, ...rest } = pointerIn(store) as {
      writeId: string;
      number: number;
      recent: string[];
    };
    const next = {
      ...rest,
      writeId: `other ${number + 1}`,
      number: number + 1,
      recent: [writeId, ...recent].slice(0, 64),
      data,
    };
    store.objects.set(pointerKey, { body: Buffer.from(JSON.stringify(next)), etag: `other ${number + 1}` });
  }
}
