/** Each kind of damage is found without a change in the directory, and what a start refuses is told in the same words. */
import assert from "node:assert/strict";
import { appendFile, mkdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { checkDirectory } from "../src/directory-check.js";
import type { DirectoryCheck } from "../src/index.js";
import { encodeIdentity, readIdentity } from "../src/identity.js";
import { StorageError } from "../src/index.js";
import { chunkKey, entriesKey } from "../src/rows.js";
import {
  bootId,
  clusterId,
  contentsOf,
  copyOf,
  databaseFiles,
  laterBootId,
  newPath,
  nodeId,
  open,
  openFormed,
} from "./fixture.js";
import { blocks, editRows, lastIndex, logOf, makePrototypes, snapshot } from "./prototypes.js";
import type { Prototypes } from "./prototypes.js";
import { flip } from "./refusals.js";

let made: Prototypes;

before(async () => {
  made = await makePrototypes();
});

/** Twice, so that the first check is seen to have left no trace. */
async function check(directory: string, machineBootId = bootId): Promise<DirectoryCheck> {
  const contents = await contentsOf(directory);
  const first = await checkDirectory({ directory, machineBootId });
  const second = await checkDirectory({ directory, machineBootId });
  assert.deepEqual(await contentsOf(directory), contents, "no file was touched");
  assert.deepEqual(reasons(second), reasons(first));
  return second;
}

function reasons({ problems }: DirectoryCheck): string[] {
  return problems.map(({ code, reason }) => `${code}: ${reason}`);
}

async function damagedBy(damage: (directory: string) => Promise<unknown>, from: keyof Prototypes = "inLog") {
  const directory = await copyOf(made[from]);
  await damage(directory);
  return { directory, checked: await check(directory) };
}

/** The words of the start that follows, which is the first to change anything. */
async function refusalAt(directory: string): Promise<string> {
  try {
    await (await open(directory)).close();
  } catch (error) {
    assert(error instanceof StorageError);
    return `${error.code}: ${error.reason}`;
  }
  return assert.fail("it starts");
}

const newestLog = async (directory: string): Promise<string> => (await logOf(directory)).path;
const inDatabase = (directory: string, name: string): string => join(directory, "db", name);

describe("checking a stopped directory", () => {
  for (const from of ["inLog", "inTables"] as const) {
    it(`reads all of a sound one (${from})`, async () => {
      const { identity, markedBatch, problems, database, remains } = await check(await copyOf(made[from]));
      assert.deepEqual([problems, remains], [[], null]);
      assert.deepEqual([identity?.nodeId, identity?.clusterId, identity?.quarantine], [nodeId, clusterId, null]);
      assert.equal(markedBatch, 12);
      assert.ok(database !== null);
      assert.equal(database.batchNumber, 12);
      const indexes = [...database.entries()].map(({ index }) => index);
      assert.deepEqual(
        indexes,
        Array.from({ length: lastIndex }, (_, at) => at + 1),
        "those that the snapshot covers too",
      );
      assert.deepEqual(database.restored.hardState, { term: 4, votedFor: "n2" });
      assert.equal(database.restored.base.position.index, snapshot.index);
      assert.equal(database.store.snapshot?.chunks, snapshot.chunks);
      const lengths = [];
      for (let chunk = 0; chunk <= snapshot.chunks; chunk += 1) {
        lengths.push((await database.store.readChunk(database.restored.base.position.index, chunk))?.length ?? null);
      }
      assert.deepEqual(lengths, [5_000, 5_000, 9, null]);
      assert.deepEqual(database.tails, []);
    });
  }

  it("is refused while a node has it, and takes no other directory for one", async () => {
    const directory = await copyOf(made.inLog);
    const { opened } = await openFormed(directory);
    const isLocked = (error: unknown) =>
      error instanceof StorageError && error.code === "locked" && error.reason.includes(`process ${process.pid}`);
    await assert.rejects(checkDirectory({ directory, machineBootId: bootId }), isLocked);
    await opened.close();
    assert.deepEqual(reasons(await check(directory)), []);
    const other = await newPath();
    await assert.rejects(checkDirectory({ directory: other, machineBootId: bootId }), /ENOENT/);
    await mkdir(other);
    await assert.rejects(checkDirectory({ directory: other, machineBootId: bootId }), /is no data directory/);
    await assert.rejects(readFile(join(other, "lock", "LOCK")), /ENOENT/, "nothing was made in it");
  });

  it("is one that was never formed", async () => {
    const directory = await newPath();
    await (await open(directory)).close();
    const { identity, problems, database, remains } = await check(directory);
    assert.deepEqual([identity?.clusterId, problems, database, remains], [null, [], null, null]);
  });

  it("tells the quarantine, and that the rest is sound", async () => {
    const directory = await copyOf(made.inLog);
    const opened = await open(directory);
    await opened.quarantine("old copy: n2 knows more");
    await opened.close();
    const checked = await check(directory);
    assert.match(reasons(checked).join(), /^quarantined: .*old copy: n2 knows more$/);
    assert.ok(checked.database !== null);
  });

  it("tells a write that was cut off, and leaves it", async () => {
    const { directory, checked } = await damagedBy(async (path) =>
      appendFile(await newestLog(path), Buffer.from([1, 2, 3, 4, 200])),
    );
    assert.deepEqual(checked.problems, []);
    assert.match(checked.database?.tails.map(({ found }) => found).join() ?? "", /cut short/);
    await (await open(directory)).close();
  });
});

interface Damage {
  readonly name: string;
  readonly from?: keyof Prototypes;
  readonly damage: (directory: string) => Promise<unknown>;
  readonly found: RegExp;
  /** Where a restore by force would end; null: nothing is left. */
  readonly lastIndex: number | null;
}

const damages: readonly Damage[] = [
  {
    name: "a flipped bit in a record of the log",
    damage: async (path) => flip(await newestLog(path), 60_000),
    found: /^damaged: db\/\d+\.log is damaged: .*wrong checksum/,
    lastIndex: 10,
  },
  {
    name: "a flipped bit in a table",
    from: "inTables",
    damage: async (path) => flip((await databaseFiles(path, /\.ldb$/)).at(-1) as string, 50_000),
    found: /^damaged: db\/\d+\.ldb is damaged/,
    lastIndex: null,
  },
  {
    name: "the log deleted",
    damage: async (path) => rm(await newestLog(path)),
    found: /^damaged: db\/\d+\.log is damaged: the file is missing/,
    lastIndex: 0,
  },
  {
    name: "CURRENT deleted",
    damage: (path) => rm(inDatabase(path, "CURRENT")),
    found: /^damaged: db\/CURRENT is damaged: the file is missing/,
    lastIndex,
  },
  {
    name: "the database deleted",
    damage: (path) => rm(join(path, "db"), { recursive: true }),
    found: /^damaged: db is damaged: the directory is missing/,
    lastIndex: null,
  },
  {
    name: "an entry's block with another's payloads",
    damage: (path) =>
      editRows(path, async (get) => {
        const key = entriesKey(0, blocks[2]);
        return [{ type: "put", key, value: await get(entriesKey(0, blocks[3])) }];
      }),
    found: /^damaged: db is damaged: a row has a wrong checksum/,
    lastIndex: 40,
  },
  {
    name: "a chunk of the snapshot is missing",
    damage: (path) =>
      editRows(path, () => Promise.resolve([{ type: "del", key: chunkKey(snapshot.index, snapshot.attempt, 1) }])),
    found: /^damaged: db is damaged: chunk 1 of the snapshot of index 30 is missing/,
    lastIndex: null,
  },
  {
    name: "both slots of mark",
    damage: async (path) => truncate(join(path, "mark"), 0),
    found: /^damaged: mark is damaged: both of its slots are invalid/,
    lastIndex,
  },
  {
    name: "identity",
    damage: (path) => flip(join(path, "identity"), 30),
    found: /^damaged: identity is damaged: it has a wrong checksum/,
    lastIndex,
  },
  {
    name: "identity deleted",
    damage: (path) => rm(join(path, "identity")),
    found: /^damaged: identity is damaged: the file is missing, and there is a db/,
    lastIndex,
  },
  {
    name: "identity put back to before the formation",
    damage: async (path) => {
      const now = await readIdentity(path);
      assert(now !== null);
      await writeFile(join(path, "identity"), encodeIdentity({ ...now, clusterId: null }, null));
    },
    found: /^damaged: identity is damaged: it says that this node was never formed, and 12 batches were written/,
    lastIndex: null,
  },
];

describe("checking a damaged directory", () => {
  for (const { name, from = "inLog", damage, found, lastIndex: expected } of damages) {
    it(name, async () => {
      const { directory, checked } = await damagedBy(damage, from);
      const [first, ...more] = reasons(checked);
      assert.match(first ?? "", found);
      assert.deepEqual(more, []);
      assert.equal(checked.database, null);
      assert.equal(checked.remains?.lastIndex ?? null, expected);
      assert.equal(await refusalAt(directory), first, "a start says the same");
    });
  }

  it("tells the quarantine that damage has led to, and the damage", async () => {
    const { directory } = await damagedBy(async (path) => flip(await newestLog(path), 60_000));
    await refusalAt(directory);
    const checked = await check(directory);
    assert.match(reasons(checked).join("\n"), /^quarantined: .*wrong checksum.*\ndamaged: .*wrong checksum/);
  });

  it("after a restart of the machine a torn end is none", async () => {
    const directory = await copyOf(made.inLog);
    const { path, bytes } = await logOf(directory);
    await appendFile(path, Buffer.alloc(bytes.length % 32_768 > 32_000 ? 8 : 16, 0xab));
    assert.match(reasons(await check(directory)).join(), /^damaged: /);
    assert.deepEqual(reasons(await check(directory, laterBootId)), []);
  });

  it("a file that can't be read is told, and nothing concluded from it", async () => {
    const { checked } = await damagedBy(async (path) => {
      const log = await newestLog(path);
      await rm(log);
      await mkdir(log);
    });
    assert.match(reasons(checked).join(), /^io: reading the data directory failed: EISDIR/);
  });
});
