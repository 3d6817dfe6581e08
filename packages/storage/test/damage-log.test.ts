/** Every kind of damage is refused at this start and at all later ones, with its reason, and nothing but `identity` is touched. */
import { appendFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "node:test";
import { logOf } from "./prototypes.js";
import { flip, run } from "./refusals.js";
import type { Case } from "./refusals.js";

/** Where in a record, from its begin. */
const regions = {
  checksum: 1,
  "length, low byte": 4,
  "length, high byte": 5,
  type: 6,
  "batch header": 9,
  payload: 40,
} as const;
/** Which record: the third is the one of 90 kB, in four pieces. */
const records = { first: 0, second: 1, large: 2, "one in the middle": 5, "one before the last": -2, last: -1 } as const;

const flippedRecords: readonly Case[] = Object.entries(records).flatMap(([which, at]) =>
  Object.entries(regions).map(
    ([region, offset]): Case => ({
      name: `${region} of the ${which} record`,
      from: "inLog",
      alsoRestarted: true,
      damage: async (directory) => {
        const log = await logOf(directory);
        await flip(log.path, (log.records.at(at)?.offset ?? Number.NaN) + offset);
      },
      found: /db.* is damaged/,
    }),
  ),
);

describe("a flipped bit in the log", () => run(flippedRecords));

const cutTo = (end: (records: readonly { offset: number }[], size: number) => number) => async (directory: string) => {
  const log = await logOf(directory);
  await truncate(log.path, end(log.records, log.bytes.length));
};
const changedLogs: readonly Case[] = [
  {
    name: "cut inside its last record",
    from: "inLog",
    damage: cutTo((_all, size) => size - 1),
    found: /ends with batch 11, and batch 12/,
    alsoRestarted: true,
  },
  {
    name: "cut between two records",
    from: "inLog",
    damage: cutTo((all) => all.at(-1)?.offset ?? 0),
    found: /ends with batch 11, and batch 12/,
    alsoRestarted: true,
  },
  {
    name: "cut to nothing",
    from: "inLog",
    damage: cutTo(() => 0),
    found: /ends with batch 1, and batch 12/,
    alsoRestarted: true,
  },
  {
    name: "deleted",
    from: "inLog",
    damage: async (directory) => rm((await logOf(directory)).path),
    found: /\.log is damaged: the file is missing/,
    alsoRestarted: true,
  },
  {
    name: "deleted when empty",
    from: "inTables",
    damage: async (directory) => rm((await logOf(directory)).path),
    found: /\.log is damaged: the file is missing/,
  },
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
  {
    name: "zeros at its end",
    from: "inLog",
    damage: async (directory) => appendFile((await logOf(directory)).path, Buffer.alloc(4_096)),
    found: /unknown type 0/,
  },
  {
    name: "anything at its end",
    from: "inLog",
    damage: async (directory) => appendFile((await logOf(directory)).path, "not a record at all"),
    found: /is damaged: a record of unknown type/,
  },
  {
    name: "what looks like the beginning of a record at its end",
    from: "inLog",
    damage: async (directory) => {
      const head = Buffer.from([1, 2, 3, 4, 0, 4, 1]);
      await appendFile((await logOf(directory)).path, Buffer.concat([head, Buffer.alloc(40, 0xa5)]));
    },
    found: /doesn't follow the batch before/,
  },
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
];

describe("a log that isn't what it was", () => run(changedLogs));
