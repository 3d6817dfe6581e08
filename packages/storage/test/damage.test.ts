/** Every kind of damage is refused at this start and at all later ones, with its reason, and nothing but `identity` is touched. */
import { Level } from "level";
import assert from "node:assert/strict";
import { appendFile, cp, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { encodeIdentity, readIdentity } from "../src/identity.js";
import { StorageError, openDataDirectory } from "../src/index.js";
import { baseKey, chunkKey, completeKey, decodeMeta, encodeMeta, encodeOwner, entriesKey, metaKey, ownerKey, seal, unseal } from "../src/rows.js";
import type { Meta } from "../src/rows.js";
import { bootId, clusterId, contentsOf, copyOf, databaseFiles, firstBase, formNew, index, laterBootId, newPath, nodeId, open, owner, term } from "./fixture.js";
import { blocks, editRows, logOf, makePrototypes, snapshot } from "./prototypes.js";
import type { Prototypes, RowEdit } from "./prototypes.js";

let prototypes: Prototypes;

before(async () => {
  prototypes = await makePrototypes();
});

/** Opens three times and demands a refusal each time. */
async function expectRefusal(directory: string, found: RegExp, machineBootId: string = bootId): Promise<void> {
  const contents = await contentsOf(directory);
  const first = await refusal(directory, machineBootId);
  assert.match(first.message, found);
  assert.equal(first.code, "damaged");
  assert.equal(first.exitCode, 74);
  assert.match(first.message, /; see docs\/operations\.md#a-node-that-refuses-to-start$/);
  const afterwards = await contentsOf(directory);
  assert.equal((await readIdentity(directory))?.quarantine, first.reason, "the reason is on disk");
  contents.delete("identity");
  assert.deepEqual(new Map([...afterwards].filter(([name]) => name !== "identity")), contents, "nothing else was touched");
  for (let start = 2; start <= 3; start++) {
    const later = await refusal(directory, laterBootId);
    assert.equal(later.code, "quarantined");
    assert.equal(later.exitCode, 74);
    assert(later.message.includes(first.reason), "the reason is told again");
    assert.deepEqual(await contentsOf(directory), afterwards);
  }
}

async function refusal(directory: string, machineBootId: string): Promise<StorageError> {
  try {
    const opened = await open(directory, { machineBootId });
    await opened.close();
  } catch (error) {
    assert(error instanceof StorageError, `a StorageError, not ${String(error)}`);
    return error;
  }
  assert.fail("a damaged directory was opened");
}

async function flip(path: string, at: number, mask = 0x10): Promise<void> {
  const bytes = await readFile(path);
  const offset = at < 0 ? bytes.length + at : at;
  bytes[offset] = (bytes[offset] as number) ^ mask;
  await writeFile(path, bytes);
}

interface Case {
  readonly name: string;
  readonly from: keyof Prototypes;
  readonly damage: (directory: string) => Promise<void>;
  readonly found: RegExp;
  /** Refused after the machine was restarted, too. */
  readonly alsoRestarted?: true;
}

function run(cases: readonly Case[]): void {
  for (const { name, from, damage, found, alsoRestarted } of cases) {
    for (const machineBootId of alsoRestarted ? [bootId, laterBootId] : [bootId]) {
      test(machineBootId === bootId ? name : `${name}, after a restart of the machine`, async () => {
        const directory = await copyOf(prototypes[from]);
        await damage(directory);
        await expectRefusal(directory, found, machineBootId);
        await rm(directory, { recursive: true });
      });
    }
  }
}

/** Where in a record, from its begin. */
const regions = { checksum: 1, "length, low byte": 4, "length, high byte": 5, type: 6, "batch header": 9, payload: 40 } as const;
/** Which record: the third is the one of 90 kB, in four pieces. */
const records = { first: 0, second: 1, large: 2, "one in the middle": 5, "one before the last": -2, last: -1 } as const;

describe("a flipped bit in the log", () => {
  run(
    Object.entries(records).flatMap(([which, at]) =>
      Object.entries(regions).map(([region, offset]): Case => ({
        name: `${region} of the ${which} record`,
        from: "inLog",
        alsoRestarted: true,
        damage: async (directory) => {
          const log = await logOf(directory);
          await flip(log.path, (log.records.at(at)?.offset ?? Number.NaN) + offset);
        },
        found: /db.* is damaged/,
      })),
    ),
  );
});

describe("a log that isn't what it was", () => {
  const cutTo = (end: (records: readonly { offset: number }[], size: number) => number) => async (directory: string) => {
    const log = await logOf(directory);
    await truncate(log.path, end(log.records, log.bytes.length));
  };
  run([
    { name: "cut inside its last record", from: "inLog", damage: cutTo((_all, size) => size - 1), found: /ends with batch 11, and batch 12/, alsoRestarted: true },
    {
      name: "cut between two records",
      from: "inLog",
      damage: cutTo((all) => all.at(-1)?.offset ?? 0),
      found: /ends with batch 11, and batch 12/,
      alsoRestarted: true,
    },
    { name: "cut to nothing", from: "inLog", damage: cutTo(() => 0), found: /ends with batch 1, and batch 12/, alsoRestarted: true },
    { name: "deleted", from: "inLog", damage: async (directory) => rm((await logOf(directory)).path), found: /\.log is damaged: the file is missing/, alsoRestarted: true },
    { name: "deleted when empty", from: "inTables", damage: async (directory) => rm((await logOf(directory)).path), found: /\.log is damaged: the file is missing/ },
    {
      name: "a page of zeros in the middle",
      from: "inLog",
      damage: async (directory) => {
        const { path, bytes } = await logOf(directory);
        await writeFile(path, bytes.fill(0, 40_960, 45_056));
      },
      found: /\.log is damaged: wrong checksum of the record at \d+, with sound records behind it/,
      alsoRestarted: true,
    },
    {
      name: "a page of zeros over a whole header",
      from: "inLog",
      damage: async (directory) => {
        const { path, bytes } = await logOf(directory);
        await writeFile(path, bytes.fill(0, 32_768, 36_864));
      },
      found: /unknown type 0 at 32768, with sound records behind it/,
      alsoRestarted: true,
    },
    { name: "zeros at its end", from: "inLog", damage: async (directory) => appendFile((await logOf(directory)).path, Buffer.alloc(4_096)), found: /unknown type 0/ },
    { name: "anything at its end", from: "inLog", damage: async (directory) => appendFile((await logOf(directory)).path, "not a record at all"), found: /is damaged: a record of unknown type/ },
    {
      name: "a record twice",
      from: "inLog",
      damage: async (directory) => {
        const { path, bytes, records: all } = await logOf(directory);
        await writeFile(path, Buffer.concat([bytes, bytes.subarray(all.at(-1)?.offset)]));
      },
      found: /doesn't follow the one before/,
      alsoRestarted: true,
    },
    {
      name: "a torn end with another log behind it",
      from: "inLog",
      damage: async (directory) => {
        const { path, bytes, records: all } = await logOf(directory);
        await truncate(path, bytes.length - 3);
        await writeFile(join(directory, "db", "000099.log"), bytes.subarray(all.at(-1)?.offset));
      },
      found: /a later log has batches/,
      alsoRestarted: true,
    },
  ]);
});

describe("CURRENT and MANIFEST", () => {
  const manifestOf = async (directory: string): Promise<string> => (await databaseFiles(directory, /^MANIFEST/))[0] as string;
  const current = (directory: string): string => join(directory, "db", "CURRENT");
  run([
    { name: "CURRENT missing", from: "inLog", damage: async (directory) => rm(current(directory)), found: /CURRENT is damaged: the file is missing/, alsoRestarted: true },
    { name: "CURRENT empty", from: "inLog", damage: async (directory) => writeFile(current(directory), ""), found: /CURRENT is damaged: it doesn't name/, alsoRestarted: true },
    { name: "CURRENT without its newline", from: "inLog", damage: async (directory) => truncate(current(directory), 15), found: /CURRENT is damaged: it doesn't name/ },
    { name: "CURRENT names another", from: "inLog", damage: async (directory) => writeFile(current(directory), "MANIFEST-000077\n"), found: /MANIFEST-000077 is damaged: the file is missing/ },
    { name: "MANIFEST missing", from: "inTables", damage: async (directory) => rm(await manifestOf(directory)), found: /MANIFEST-\d+ is damaged: the file is missing/ },
    { name: "MANIFEST empty", from: "inTables", damage: async (directory) => truncate(await manifestOf(directory), 0), found: /MANIFEST-\d+ is damaged: it ends before/, alsoRestarted: true },
    {
      name: "MANIFEST cut by ten bytes",
      from: "inTables",
      damage: async (directory) => {
        const path = await manifestOf(directory);
        await truncate(path, (await readFile(path)).length - 10);
      },
      found: /MANIFEST-\d+ is damaged: it ends before/,
      alsoRestarted: true,
    },
    ...[0, 5, 6, 12, 40, -20, -1].map((at): Case => ({
      name: `a flipped bit at ${at} of the MANIFEST`,
      from: "inTables",
      damage: async (directory) => flip(await manifestOf(directory), at),
      found: /MANIFEST-\d+ is damaged/,
      alsoRestarted: true,
    })),
  ]);
});

describe("a table", () => {
  const tableOf = async (directory: string): Promise<string> => (await databaseFiles(directory, /\.ldb$/)).at(-1) as string;
  run([
    { name: "missing", from: "inTables", damage: async (directory) => rm(await tableOf(directory)), found: /\.ldb is damaged: the file is missing/, alsoRestarted: true },
    {
      name: "cut by one byte",
      from: "inTables",
      damage: async (directory) => {
        const path = await tableOf(directory);
        await truncate(path, (await readFile(path)).length - 1);
      },
      found: /\.ldb is damaged: it has \d+ bytes and should have \d+/,
    },
    ...[0, 30, 50_000, 100_000, -400, -250, -60, -47, -30, -1].map((at): Case => ({
      name: `a flipped bit at ${at}`,
      from: "inTables",
      damage: async (directory) => flip(await tableOf(directory), at),
      found: /\.ldb is damaged/,
      alsoRestarted: true,
    })),
  ]);
});

describe("identity and mark", () => {
  const identity = (directory: string): string => join(directory, "identity");
  const mark = (directory: string): string => join(directory, "mark");
  run([
    { name: "a flipped bit in identity", from: "inLog", damage: async (directory) => flip(identity(directory), 30), found: /^identity is damaged: it has a wrong checksum/ },
    { name: "a flipped bit in identity's checksum", from: "inLog", damage: async (directory) => flip(identity(directory), -3, 1), found: /^identity is damaged: it has a wrong checksum/ },
    { name: "identity empty", from: "inLog", damage: async (directory) => truncate(identity(directory), 0), found: /^identity is damaged: it has no checksum/, alsoRestarted: true },
    { name: "identity missing", from: "inLog", damage: async (directory) => rm(identity(directory)), found: /^identity is damaged: the file is missing, and there is a db/, alsoRestarted: true },
    {
      name: "identity and database missing",
      from: "inLog",
      damage: async (directory) => {
        await rm(identity(directory));
        await rm(join(directory, "db"), { recursive: true });
      },
      found: /^identity is damaged: the file is missing, and there is a mark/,
    },
    {
      name: "identity put back to before the formation",
      from: "inLog",
      damage: async (directory) => {
        const now = await readIdentity(directory);
        assert(now !== null);
        await writeFile(identity(directory), encodeIdentity({ ...now, clusterId: null }, null));
      },
      found: /^identity is damaged: it says that this node was never formed, and 12 batches were written/,
      alsoRestarted: true,
    },
    { name: "both slots of mark flipped", from: "inLog", damage: async (directory) => (await flip(mark(directory), 10), flip(mark(directory), 4_096 + 15)), found: /^mark is damaged: both/, alsoRestarted: true },
    { name: "one slot of mark flipped", from: "inLog", damage: async (directory) => flip(mark(directory), 10), found: /^mark is damaged: a slot is invalid/ },
    { name: "mark of zeros", from: "inLog", damage: async (directory) => writeFile(mark(directory), Buffer.alloc(8_192)), found: /^mark is damaged: both/, alsoRestarted: true },
    { name: "mark empty", from: "inLog", damage: async (directory) => truncate(mark(directory), 0), found: /^mark is damaged: both/, alsoRestarted: true },
    { name: "mark missing", from: "inLog", damage: async (directory) => rm(mark(directory)), found: /^mark is damaged: the file is missing/, alsoRestarted: true },
    {
      name: "another directory's mark",
      from: "inLog",
      damage: async (directory) => {
        const other = await otherInstance();
        await cp(mark(other), mark(directory));
      },
      found: /^mark is damaged: it belongs to another directory/,
      alsoRestarted: true,
    },
  ]);
});

async function otherInstance(): Promise<string> {
  const directory = await newPath();
  const opened = await openDataDirectory({ directory, nodeId, machineBootId: bootId, randomInstance: () => "another" });
  await opened.form(clusterId, firstBase);
  await opened.close();
  return directory;
}

describe("the database as a whole", () => {
  const replaceBy = (source: (directory: string) => Promise<string>) => async (directory: string) => {
    await rm(join(directory, "db"), { recursive: true });
    await cp(join(await source(directory), "db"), join(directory, "db"), { recursive: true });
  };
  run([
    { name: "missing", from: "inLog", damage: async (directory) => rm(join(directory, "db"), { recursive: true }), found: /^db is damaged: the directory is missing/, alsoRestarted: true },
    { name: "empty", from: "inLog", damage: async (directory) => (await rename(join(directory, "db"), join(directory, "gone")), mkdir(join(directory, "db"))), found: /CURRENT is damaged/ },
    { name: "an older copy", from: "inLog", damage: replaceBy(() => Promise.resolve(prototypes.older)), found: /^db is damaged: it ends with batch 10, and batch 12 was finished/, alsoRestarted: true },
    { name: "a newly formed one", from: "inLog", damage: replaceBy(async () => (await formNew().then(async (made) => (await made.opened.close(), made))).directory), found: /^db is damaged: it ends with batch 1, and/, alsoRestarted: true },
    { name: "another instance's", from: "inLog", damage: replaceBy(otherInstance), found: /^db is damaged: it belongs to node n1, instance another/, alsoRestarted: true },
    {
      name: "opened by a LevelDB that left something out",
      from: "inLog",
      damage: async (directory) => appendFile(join(directory, "db", "LOG"), "2030/01/01-00:00:00 7f (ignoring error) db/000004.log: dropping 311 bytes; Corruption: checksum mismatch\n"),
      found: /db\/LOG is damaged: LevelDB wrote/,
      alsoRestarted: true,
    },
    {
      name: "opened so before the last opening",
      from: "inLog",
      damage: async (directory) => appendFile(join(directory, "db", "LOG.old"), "2030/01/01-00:00:00 7f Ignoring error Corruption: bad record\n"),
      found: /db\/LOG\.old is damaged: LevelDB wrote/,
    },
  ]);
});

describe("rows", () => {
  const edited = (edit: (get: (key: Buffer) => Promise<Buffer>) => Promise<RowEdit[]>) => (directory: string) => editRows(directory, edit);
  const without = (key: Buffer) => edited(async (get) => (await get(key), [{ type: "del", key }]));
  const meta = (change: (before: Meta) => Partial<Meta>) =>
    edited(async (get) => {
      const before = decodeMeta(await get(metaKey));
      return [{ type: "put", key: metaKey, value: encodeMeta({ ...before, ...change(before) }) }];
    });
  const flipped = (key: Buffer, at: number) =>
    edited(async (get) => {
      const value = Buffer.from(await get(key));
      value[at] = (value[at] as number) ^ 1;
      return [{ type: "put", key, value }];
    });
  const chunk = (number: number): Buffer => chunkKey(snapshot.index, snapshot.attempt, number);
  const from = "inTables";
  run([
    { name: "no hard state", from, damage: without(metaKey), found: /the row with its hard state is missing/, alsoRestarted: true },
    { name: "hard state flipped", from, damage: flipped(metaKey, 55), found: /a row has a wrong checksum/, alsoRestarted: true },
    { name: "an older hard state", from, damage: meta(() => ({ hardState: { term: term(2), votedFor: null } })), found: /the term is older than the log's/ },
    { name: "an older batch number", from, damage: meta((before) => ({ batchNumber: before.batchNumber - 1 })), found: /ends with batch 11, and batch 12/ },
    { name: "another last index", from, damage: meta(({ last }) => ({ last: { ...last, index: index(50) } })), found: /should end with index 50, and ends with 49/ },
    { name: "another last chain value", from, damage: meta(({ last }) => ({ last: { ...last, chain: 7 } })), found: /should end with index 49/ },
    { name: "a later first index", from, damage: meta(() => ({ firstIndex: 41 })), found: /the log from 41 to 49 doesn't meet its base 30/ },
    { name: "an unknown first index", from, damage: meta(() => ({ firstIndex: 2 })), found: /the entries from index 2 to 10 are missing/ },
    { name: "another generation", from, damage: meta(() => ({ generation: 1, firstIndex: 31 })), found: /should end with index 49/ },
    { name: "no owner", from, damage: without(ownerKey), found: /the row with its owner is missing/ },
    { name: "another cluster", from, damage: edited(async () => [{ type: "put", key: ownerKey, value: encodeOwner({ ...owner, clusterId: "f00" }) }]), found: /belongs to node n1, instance 5f0c8a1b2d3e4f60, cluster f00/ },
    { name: "no first base", from, damage: without(baseKey), found: /the row with its first base is missing/ },
    ...blocks.map((first): Case => ({ name: `no block of entries at ${first}`, from, damage: without(entriesKey(0, first)), found: /the entries from index|should end with/ })),
    { name: "a block flipped", from, damage: flipped(entriesKey(0, 41), 60), found: /a row has a wrong checksum/ },
    {
      name: "a block at another's place",
      from,
      damage: edited(async (get) => [{ type: "put", key: entriesKey(0, 46), value: await get(entriesKey(0, 47)) }]),
      found: /a row has a wrong checksum/,
    },
    {
      name: "a block at another's place, sealed for it",
      from,
      damage: edited(async (get) => {
        const key = entriesKey(0, 46);
        return [{ type: "put", key, value: seal(key, unseal(entriesKey(0, 47), await get(entriesKey(0, 47)))) }];
      }),
      found: /the chain is broken before index 46/,
    },
    ...[0, 1, 2].flatMap((number): Case[] => [
      { name: `no chunk ${number}`, from, damage: without(chunk(number)), found: new RegExp(`chunk ${number} of the snapshot of index 30 is missing`) },
      { name: `chunk ${number} flipped`, from, damage: flipped(chunk(number), 6), found: new RegExp(`chunk ${number} of the snapshot of index 30 has a wrong checksum`) },
    ]),
    {
      name: "a chunk with another's bytes",
      from,
      damage: edited(async (get) => [{ type: "put", key: chunk(1), value: seal(chunk(1), unseal(chunk(0), await get(chunk(0)))) }]),
      found: /the snapshot of index 30 has a wrong checksum/,
    },
    { name: "no snapshot", from, damage: without(completeKey(snapshot.index)), found: /the newest snapshot should be that of index 30, and is that of none/ },
    { name: "an unknown row", from, damage: edited(async () => [{ type: "put", key: Buffer.from("x1"), value: Buffer.alloc(9) }]), found: /unknown key 7831/ },
    {
      name: "a batch of somebody else in the log",
      from: "inTables",
      damage: async (directory) => {
        const level = new Level<Buffer, Buffer>(join(directory, "db"), { keyEncoding: "buffer", valueEncoding: "buffer" });
        await level.put(Buffer.from("e"), Buffer.from("e"), { sync: true });
        await level.close();
      },
      found: /a batch in its log is not of this program/,
      alsoRestarted: true,
    },
  ]);
});
