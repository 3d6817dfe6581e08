/** Every kind of damage is refused at this start and at all later ones, with its reason, and nothing but `identity` is touched. */
import assert from "node:assert/strict";
import { appendFile, cp, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "node:test";
import { encodeIdentity, readIdentity } from "../src/identity.js";
import { openDataDirectory } from "../src/index.js";
import { bootId, clusterId, databaseFiles, firstBase, formNew, newPath, nodeId } from "./fixture.js";
import { flip, prototypes, run } from "./refusals.js";
import type { Case } from "./refusals.js";

const manifestOf = async (directory: string): Promise<string> =>
  (await databaseFiles(directory, /^MANIFEST/))[0] as string;
const current = (directory: string): string => join(directory, "db", "CURRENT");
const manifests: readonly Case[] = [
  {
    name: "CURRENT missing",
    from: "inLog",
    damage: async (directory) => rm(current(directory)),
    found: /CURRENT is damaged: the file is missing/,
    alsoRestarted: true,
  },
  {
    name: "CURRENT empty",
    from: "inLog",
    damage: async (directory) => writeFile(current(directory), ""),
    found: /CURRENT is damaged: it doesn't name/,
    alsoRestarted: true,
  },
  {
    name: "CURRENT without its newline",
    from: "inLog",
    damage: async (directory) => truncate(current(directory), 15),
    found: /CURRENT is damaged: it doesn't name/,
  },
  {
    name: "CURRENT names another",
    from: "inLog",
    damage: async (directory) => writeFile(current(directory), "MANIFEST-000077\n"),
    found: /MANIFEST-000077 is damaged: the file is missing/,
  },
  {
    name: "MANIFEST missing",
    from: "inTables",
    damage: async (directory) => rm(await manifestOf(directory)),
    found: /MANIFEST-\d+ is damaged: the file is missing/,
  },
  {
    name: "MANIFEST empty",
    from: "inTables",
    damage: async (directory) => truncate(await manifestOf(directory), 0),
    found: /MANIFEST-\d+ is damaged: it ends before/,
    alsoRestarted: true,
  },
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
  ...[0, 5, 6, 12, 40, -20, -1].map(
    (at): Case => ({
      name: `a flipped bit at ${at} of the MANIFEST`,
      from: "inTables",
      damage: async (directory) => flip(await manifestOf(directory), at),
      found: /MANIFEST-\d+ is damaged/,
      alsoRestarted: true,
    }),
  ),
];

describe("CURRENT and MANIFEST", () => run(manifests));

const tableOf = async (directory: string): Promise<string> =>
  (await databaseFiles(directory, /\.ldb$/)).at(-1) as string;
const tables: readonly Case[] = [
  {
    name: "missing",
    from: "inTables",
    damage: async (directory) => rm(await tableOf(directory)),
    found: /\.ldb is damaged: the file is missing/,
    alsoRestarted: true,
  },
  {
    name: "cut by one byte",
    from: "inTables",
    damage: async (directory) => {
      const path = await tableOf(directory);
      await truncate(path, (await readFile(path)).length - 1);
    },
    found: /\.ldb is damaged: it has \d+ bytes and should have \d+/,
  },
  ...[0, 30, 50_000, 100_000, -400, -250, -60, -47, -30, -1].map(
    (at): Case => ({
      name: `a flipped bit at ${at}`,
      from: "inTables",
      damage: async (directory) => flip(await tableOf(directory), at),
      found: /\.ldb is damaged/,
      alsoRestarted: true,
    }),
  ),
];

describe("a table", () => run(tables));

async function otherInstance(): Promise<string> {
  const directory = await newPath();
  const opened = await openDataDirectory({ directory, nodeId, machineBootId: bootId, randomInstance: () => "another" });
  await opened.form(clusterId, firstBase);
  await opened.close();
  return directory;
}

const identity = (directory: string): string => join(directory, "identity");
const mark = (directory: string): string => join(directory, "mark");
const identities: readonly Case[] = [
  {
    name: "a flipped bit in identity",
    from: "inLog",
    damage: async (directory) => flip(identity(directory), 30),
    found: /^identity is damaged: it has a wrong checksum/,
  },
  {
    name: "a flipped bit in identity's checksum",
    from: "inLog",
    damage: async (directory) => flip(identity(directory), -3, 1),
    found: /^identity is damaged: it has a wrong checksum/,
  },
  {
    name: "identity empty",
    from: "inLog",
    damage: async (directory) => truncate(identity(directory), 0),
    found: /^identity is damaged: it has no checksum/,
    alsoRestarted: true,
  },
  {
    name: "identity missing",
    from: "inLog",
    damage: async (directory) => rm(identity(directory)),
    found: /^identity is damaged: the file is missing, and there is a db/,
    alsoRestarted: true,
  },
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
  {
    name: "both slots of mark flipped",
    from: "inLog",
    damage: async (directory) => (await flip(mark(directory), 10), flip(mark(directory), 4_096 + 15)),
    found: /^mark is damaged: both/,
    alsoRestarted: true,
  },
  {
    name: "one slot of mark flipped",
    from: "inLog",
    damage: async (directory) => flip(mark(directory), 10),
    found: /^mark is damaged: a slot is invalid/,
  },
  {
    name: "mark of zeros",
    from: "inLog",
    damage: async (directory) => writeFile(mark(directory), Buffer.alloc(8_192)),
    found: /^mark is damaged: both/,
    alsoRestarted: true,
  },
  {
    name: "mark empty",
    from: "inLog",
    damage: async (directory) => truncate(mark(directory), 0),
    found: /^mark is damaged: both/,
    alsoRestarted: true,
  },
  {
    name: "mark missing",
    from: "inLog",
    damage: async (directory) => rm(mark(directory)),
    found: /^mark is damaged: the file is missing/,
    alsoRestarted: true,
  },
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
];

describe("identity and mark", () => run(identities));

const replaceBy = (source: (directory: string) => Promise<string>) => async (directory: string) => {
  await rm(join(directory, "db"), { recursive: true });
  await cp(join(await source(directory), "db"), join(directory, "db"), { recursive: true });
};
const databases: readonly Case[] = [
  {
    name: "missing",
    from: "inLog",
    damage: async (directory) => rm(join(directory, "db"), { recursive: true }),
    found: /^db is damaged: the directory is missing/,
    alsoRestarted: true,
  },
  {
    name: "empty",
    from: "inLog",
    damage: async (directory) => (
      await rename(join(directory, "db"), join(directory, "gone")), mkdir(join(directory, "db"))
    ),
    found: /CURRENT is damaged/,
  },
  {
    name: "an older copy",
    from: "inLog",
    damage: replaceBy(() => Promise.resolve(prototypes().older)),
    found: /^db is damaged: it ends with batch 10, and batch 12 was finished/,
    alsoRestarted: true,
  },
  {
    name: "a newly formed one",
    from: "inLog",
    damage: replaceBy(async () => (await formNew().then(async (made) => (await made.opened.close(), made))).directory),
    found: /^db is damaged: it ends with batch 1, and/,
    alsoRestarted: true,
  },
  {
    name: "another instance's",
    from: "inLog",
    damage: replaceBy(otherInstance),
    found: /^db is damaged: it belongs to node n1, instance another/,
    alsoRestarted: true,
  },
  {
    name: "opened by a LevelDB that left something out",
    from: "inLog",
    damage: async (directory) =>
      appendFile(
        join(directory, "db", "LOG"),
        "2030/01/01-00:00:00 7f (ignoring error) db/000004.log: dropping 311 bytes; Corruption: checksum mismatch\n",
      ),
    found: /db\/LOG is damaged: LevelDB wrote/,
    alsoRestarted: true,
  },
  {
    name: "opened so before the last opening",
    from: "inLog",
    damage: async (directory) =>
      appendFile(join(directory, "db", "LOG.old"), "2030/01/01-00:00:00 7f Ignoring error Corruption: bad record\n"),
    found: /db\/LOG\.old is damaged: LevelDB wrote/,
  },
];

describe("the database as a whole", () => run(databases));
