/** What the damage tests share: a case is a way to maltreat a directory, and the reason that the refusal must give. */
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { before, test } from "node:test";
import { readIdentity } from "../src/identity.js";
import { StorageError } from "../src/index.js";
import { bootId, contentsOf, copyOf, laterBootId, open } from "./fixture.js";
import { makePrototypes } from "./prototypes.js";
import type { Prototypes } from "./prototypes.js";

let made: Prototypes | null = null;

before(async () => {
  made = await makePrototypes();
});

export function prototypes(): Prototypes {
  assert(made !== null, "the prototypes are made before the tests");
  return made;
}

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
  assert.deepEqual(
    new Map([...afterwards].filter(([name]) => name !== "identity")),
    contents,
    "nothing else was touched",
  );
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

export async function flip(path: string, at: number, mask = 0x10): Promise<void> {
  const bytes = await readFile(path);
  const offset = at < 0 ? bytes.length + at : at;
  bytes[offset] = (bytes[offset] as number) ^ mask;
  await writeFile(path, bytes);
}

export interface Case {
  readonly name: string;
  readonly from: keyof Prototypes;
  readonly damage: (directory: string) => Promise<void>;
  readonly found: RegExp;
  /** Refused after the machine was restarted, too. */
  readonly alsoRestarted?: true;
}

export function run(cases: readonly Case[]): void {
  for (const { name, from, damage, found, alsoRestarted } of cases) {
    for (const machineBootId of alsoRestarted ? [bootId, laterBootId] : [bootId]) {
      test(machineBootId === bootId ? name : `${name}, after a restart of the machine`, async () => {
        const directory = await copyOf(prototypes()[from]);
        await damage(directory);
        await expectRefusal(directory, found, machineBootId);
        await rm(directory, { recursive: true });
      });
    }
  }
}
