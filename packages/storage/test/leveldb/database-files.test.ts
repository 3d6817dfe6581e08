/** Our reader of LevelDB's files shows what LevelDB shows, and doesn't overlook a flipped bit. */
import fc from "fast-check";
import { Level } from "level";
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { StorageError } from "../../src/index.js";
import { mergedRows, readDatabaseFiles } from "../../src/leveldb/database-files.js";
import { verifyDatabase } from "../../src/open-store.js";
import { copyOf, newPath, owner, plain } from "../fixture.js";
import { makePrototypes } from "../prototypes.js";
import type { Prototypes } from "../prototypes.js";

const options = { keyEncoding: "buffer", valueEncoding: "buffer", compression: false } as const;

type Step =
  | { readonly kind: "batch"; readonly rows: readonly (readonly [number, number | null])[] }
  | { readonly kind: "compact" }
  | { readonly kind: "reopen" };

/** Few keys, so that they are overwritten and deleted; some values larger than a block, a log block, a table's part. */
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("batch" as const),
        rows: fc.array(
          fc.tuple(
            fc.integer({ min: 0, max: 60 }),
            fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 50_000 })),
          ),
          {
            minLength: 1,
            maxLength: 12,
          },
        ),
      }),
    },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: "compact" }) },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: "reopen" }) },
  ),
  { minLength: 5, maxLength: 60 },
);

async function read(path: string): Promise<Map<string, string>> {
  const keep = (_key: Buffer, value: Buffer): string => value.toString("latin1");
  const files = await readDatabaseFiles({ path, name: "db", machineRestarted: false }, keep);
  assert.deepEqual(files.tails, []);
  return new Map([...mergedRows(files, keep)].sort(([a], [b]) => (a < b ? -1 : 1)));
}

test("it shows the rows that LevelDB shows", async () => {
  let tables = 0;
  const property = fc.asyncProperty(steps, async (todo) => {
    const path = await newPath();
    let level = new Level<Buffer, Buffer>(path, { ...options, writeBufferSize: 65_536 });
    let fill = 0;
    for (const step of todo) {
      if (step.kind === "batch") {
        await level.batch(
          step.rows.map(([key, length]) => {
            const name = Buffer.from(`key/${key % 7}/${key}`);
            return length === null
              ? { type: "del" as const, key: name }
              : { type: "put" as const, key: name, value: Buffer.alloc(length, ++fill) };
          }),
        );
      } else if (step.kind === "compact") {
        await (level as unknown as { compactRange(start: Buffer, end: Buffer): Promise<void> }).compactRange(
          Buffer.from("key/"),
          Buffer.from("key/~"),
        );
      } else {
        await level.close();
        level = new Level<Buffer, Buffer>(path, { ...options, writeBufferSize: 65_536 });
      }
    }
    await level.open();
    const shown = new Map<string, string>();
    for await (const [key, value] of level.iterator()) shown.set(key.toString("latin1"), value.toString("latin1"));
    await level.close();
    tables += (await readdir(path)).filter((name) => name.endsWith(".ldb")).length;
    assert.deepEqual(await read(path), shown);
    await rm(path, { recursive: true });
  });
  await fc.assert(property, { numRuns: 40 });
  assert(tables > 40, `most have tables: ${tables}`);
});

test("compressed tables are refused: this program writes none", async () => {
  const path = await newPath();
  for (let opening = 0; opening < 2; opening++) {
    const level = new Level<Buffer, Buffer>(path, { ...options, compression: true });
    await level.put(Buffer.from("k"), Buffer.alloc(10_000));
    await level.close();
  }
  await assert.rejects(read(path), /the data block at 0 is compressed/);
});

describe("a flipped bit anywhere", () => {
  let prototypes: Prototypes;

  before(async () => {
    prototypes = await makePrototypes();
  });

  for (const from of ["inLog", "inTables"] as const) {
    test(`of a database ${from === "inLog" ? "with a log" : "of tables"} is found`, async () => {
      const directory = await copyOf(prototypes[from]);
      const path = join(directory, "db");
      const names = (await readdir(path)).filter((name) => !name.startsWith("LO")).sort();
      const files = new Map(
        await Promise.all(names.map(async (name) => [name, await readFile(join(path, name))] as const)),
      );
      const present = names.filter((name) => files.get(name)?.length !== 0);
      const verify = async (machineRestarted: boolean): Promise<unknown> =>
        plain((await verifyDatabase({ directory, owner, machineRestarted })).recovered.restored);
      await verify(false);
      // Bytes at the ends of a file are tried as often as those of its middle: headers and footers are there.
      const place = fc.oneof(
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        fc.integer({ min: -120, max: 120 }),
      );
      const flip = fc.tuple(fc.constantFrom(...present), place, fc.integer({ min: 0, max: 7 }), fc.boolean());
      const property = fc.asyncProperty(flip, async ([name, at, bit, machineRestarted]) => {
        const bytes = files.get(name) as Buffer;
        const whole = Number.isInteger(at) ? at : Math.floor(at * bytes.length);
        const offset = ((whole % bytes.length) + bytes.length) % bytes.length;
        const changed = Buffer.from(bytes);
        changed[offset] = (changed[offset] as number) ^ (1 << bit);
        await writeFile(join(path, name), changed);
        await assert.rejects(
          verify(machineRestarted),
          (error) => error instanceof StorageError && error.code === "damaged",
          `${name} at ${offset}`,
        );
        await writeFile(join(path, name), bytes);
      });
      await fc.assert(property, { numRuns: 400 });
      await verify(false);
    });
  }
});

test("a database that was never opened by anybody", async () => {
  const path = await newPath();
  await mkdir(path);
  await assert.rejects(read(path), /db\/CURRENT is damaged: the file is missing/);
});
