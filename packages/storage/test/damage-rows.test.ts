/** Every kind of damage is refused at this start and at all later ones, with its reason, and nothing but `identity` is touched. */
import { Level } from "level";
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import {
  baseKey,
  chunkKey,
  completeKey,
  decodeBlock,
  decodeMeta,
  encodeBlock,
  encodeMeta,
  encodeOwner,
  entriesKey,
  metaKey,
  ownerKey,
  seal,
  unseal,
} from "../src/rows.js";
import type { Meta } from "../src/rows.js";
import { endOf, entriesAfter, index, owner, payloads, term } from "./fixture.js";
import { blocks, editRows, snapshot } from "./prototypes.js";
import type { RowEdit } from "./prototypes.js";
import { run } from "./refusals.js";
import type { Case } from "./refusals.js";

const edited = (edit: (get: (key: Buffer) => Promise<Buffer>) => Promise<RowEdit[]>) => (directory: string) =>
  editRows(directory, edit);
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
const rows: readonly Case[] = [
  {
    name: "no hard state",
    from,
    damage: without(metaKey),
    found: /the row with its hard state is missing/,
    alsoRestarted: true,
  },
  {
    name: "hard state flipped",
    from,
    damage: flipped(metaKey, 55),
    found: /a row has a wrong checksum/,
    alsoRestarted: true,
  },
  {
    name: "an older hard state",
    from,
    damage: meta(() => ({ hardState: { term: term(2), votedFor: null } })),
    found: /the term is older than the log's/,
  },
  {
    name: "an older batch number",
    from,
    damage: meta((before) => ({ batchNumber: before.batchNumber - 1 })),
    found: /ends with batch 11, and batch 12/,
  },
  {
    name: "another last index",
    from,
    damage: meta(({ last }) => ({ last: { ...last, index: index(50) } })),
    found: /should end with index 50, and ends with 49/,
  },
  {
    name: "another last chain value",
    from,
    damage: meta(({ last }) => ({ last: { ...last, chain: 7 } })),
    found: /should end with index 49/,
  },
  {
    name: "a later first index",
    from,
    damage: meta(() => ({ firstIndex: 41 })),
    found: /the log from 41 to 49 doesn't meet its base 30/,
  },
  {
    name: "an unknown first index",
    from,
    damage: meta(() => ({ firstIndex: 2 })),
    found: /the entries from index 2 to 10 are missing/,
  },
  {
    name: "another generation",
    from,
    damage: meta(() => ({ generation: 1, firstIndex: 31 })),
    found: /should end with index 49/,
  },
  { name: "no owner", from, damage: without(ownerKey), found: /the row with its owner is missing/ },
  {
    name: "another cluster",
    from,
    damage: edited(async () => [{ type: "put", key: ownerKey, value: encodeOwner({ ...owner, clusterId: "f00" }) }]),
    found: /belongs to node n1, instance 5f0c8a1b2d3e4f60, cluster f00/,
  },
  { name: "no first base", from, damage: without(baseKey), found: /the row with its first base is missing/ },
  ...blocks.map(
    (first): Case => ({
      name: `no block of entries at ${first}`,
      from,
      damage: without(entriesKey(0, first)),
      found: /the entries from index|should end with/,
    }),
  ),
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
  {
    name: "an entry with another payload, sealed again",
    from,
    damage: edited(async (get) => {
      const key = entriesKey(0, 41);
      const block = decodeBlock(key, await get(key));
      const entries = block.entries.map((entry, at) => (at === 2 ? { ...entry, payload: new Uint8Array(3) } : entry));
      return [{ type: "put", key, value: encodeBlock(key, { ...block, entries }) }];
    }),
    found: /the chain is broken at index 43/,
  },
  {
    name: "an entry of an older term, chained anew to the end",
    from,
    damage: edited(async (get) => {
      const key = entriesKey(0, 47);
      const { previousChain, entries } = decodeBlock(key, await get(key));
      const kept = entries.slice(0, 2);
      const older = entriesAfter(endOf(kept), 1, payloads(1, 20));
      const before = decodeMeta(await get(metaKey));
      const last = older[0] ?? assert.fail("an entry");
      return [
        { type: "put", key, value: encodeBlock(key, { previousChain, entries: [...kept, last] }) },
        { type: "put", key: metaKey, value: encodeMeta({ ...before, last }) },
      ];
    }),
    found: /the term falls at index 49/,
  },
  ...[0, 1, 2].flatMap((number): Case[] => [
    {
      name: `no chunk ${number}`,
      from,
      damage: without(chunk(number)),
      found: new RegExp(`chunk ${number} of the snapshot of index 30 is missing`),
    },
    {
      name: `chunk ${number} flipped`,
      from,
      damage: flipped(chunk(number), 6),
      found: new RegExp(`chunk ${number} of the snapshot of index 30 has a wrong checksum`),
    },
  ]),
  {
    name: "a chunk with another's bytes",
    from,
    damage: edited(async (get) => [
      { type: "put", key: chunk(1), value: seal(chunk(1), unseal(chunk(0), await get(chunk(0)))) },
    ]),
    found: /the snapshot of index 30 has a wrong checksum/,
  },
  {
    name: "no snapshot",
    from,
    damage: without(completeKey(snapshot.index)),
    found: /the newest snapshot should be that of index 30, and is that of none/,
  },
  {
    name: "an unknown row",
    from,
    damage: edited(async () => [{ type: "put", key: Buffer.from("x1"), value: Buffer.alloc(9) }]),
    found: /unknown key 7831/,
  },
  {
    name: "a batch of somebody else in the log",
    from: "inTables",
    damage: async (directory) => {
      const level = new Level<Buffer, Buffer>(join(directory, "db"), {
        keyEncoding: "buffer",
        valueEncoding: "buffer",
      });
      await level.put(Buffer.from("e"), Buffer.from("e"), { sync: true });
      await level.close();
    },
    found: /a batch in its log is not of this program/,
    alsoRestarted: true,
  },
];

describe("rows", () => run(rows));
