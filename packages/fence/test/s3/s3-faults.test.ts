/** Several writers at a store that fails at will: whatever it answers, nothing is lost, done twice, or done by who is late. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import fc from "fast-check";

import { StaleTokenError, UnknownOutcomeError } from "../../src/index.js";
import { s3Guard } from "../../src/s3.js";
import { MemoryS3, S3Failure } from "./memory-s3.js";
import type { Fault } from "./memory-s3.js";

const resource = "doc";
const pointerKey = "holdfast/doc/fence";
const linesEach = 4;

/** One operation's way to the store: how many turns it takes, and what goes wrong. */
interface Weather {
  readonly turns: number;
  readonly fault: Fault | null;
  /** What was late comes before this one. */
  readonly arrives: boolean;
}

const fault: fc.Arbitrary<Fault> = fc.record({
  status: fc.constantFrom(409, 412, 500, 503, null),
  effect: fc.constantFrom("none", "done", "late"),
  // So that 412 is no lie: the first one's answer was lost.
  attempts: fc.constant(2),
});
const weather: fc.Arbitrary<Weather> = fc.record({
  turns: fc.nat(3),
  fault: fc.option(fault, { freq: 3 }),
  arrives: fc.boolean(),
});
const run = fc.record({
  weathers: fc.array(weather, { maxLength: 100, size: "max" }),
  tokens: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 4 }),
  isSwept: fc.boolean(),
});
/** Runs mostly wait: writers pause before they try again. So many at a time, and in all. */
const lanes = 10;
const runsEach = 30;

interface Run {
  readonly weathers: readonly Weather[];
  readonly tokens: readonly number[];
  readonly isSwept: boolean;
}

interface Outcomes {
  readonly done: string[];
  readonly unknown: string[];
}

async function write(store: MemoryS3, writer: number, token: number, outcomes: Outcomes): Promise<void> {
  // A guard of its own, as in another process.
  const guard = s3Guard(store, { bucket: "notes" });
  for (let at = 0; at < linesEach; at += 1) {
    const line = `${token} by ${writer}: ${at}`;
    try {
      await guard.update({ resource, token }, (current) => `${String(current ?? "")}${line}\n`);
      outcomes.done.push(line);
    } catch (error) {
      if (error instanceof StaleTokenError) return;
      // The store's own word comes from before anything was asked of the pointer: not done.
      if (error instanceof UnknownOutcomeError) outcomes.unknown.push(line);
      else if (!(error instanceof S3Failure)) throw error;
    }
  }
}

async function sweepUntil(store: MemoryS3, isOver: () => boolean): Promise<void> {
  const guard = s3Guard(store, { bucket: "notes" });
  while (!isOver()) {
    await guard.removeGarbage(resource).catch((error: unknown) => assert.ok(error instanceof S3Failure));
    await turn();
  }
}

async function assertRun({ weathers, tokens, isSwept }: Run, seen: { faults: number; unknown: number }): Promise<void> {
  const store = new MemoryS3();
  const left = [...weathers];
  store.before = async (_operation, key) => {
    // How a store is tried out has tests of its own.
    if (key.includes("_check")) return null;
    const next = left.shift();
    for (let each = 0; each < (next?.turns ?? 0); each += 1) await turn();
    if (next?.arrives === true) store.arrive();
    if (next?.fault) seen.faults += 1;
    return next?.fault ?? null;
  };
  const outcomes: Outcomes = { done: [], unknown: [] };
  let isOver = !isSwept;
  const writers = tokens.map((token, writer) => write(store, writer, token, outcomes));
  await Promise.all([
    Promise.all(writers).finally(() => {
      isOver = true;
    }),
    sweepUntil(store, () => isOver),
  ]);
  store.arrive();
  store.before = () => null;
  seen.unknown += outcomes.unknown.length;
  await assertHistory(store, outcomes);
}

test("writers, sweepers and a store that fails before, after and long before the effect", async () => {
  const seen = { faults: 0, unknown: 0 };
  const property = fc.asyncProperty(run, (each) => assertRun(each, seen));
  await Promise.all(Array.from({ length: lanes }, () => fc.assert(property, { numRuns: runsEach })));
  assert.ok(seen.faults > 500, `${seen.faults} faults`);
  assert.ok(seen.unknown < seen.faults / 4, `${seen.unknown} of ${seen.faults} faults left an outcome open`);
});

async function assertHistory(store: MemoryS3, { done, unknown }: Outcomes): Promise<void> {
  const guard = s3Guard(store, { bucket: "notes" });
  const text = String((await guard.readNewest(resource)) ?? "");
  const lines = text.split("\n").slice(0, -1);
  assert.equal(new Set(lines).size, lines.length, "nothing is done twice");
  for (const line of done) assert.ok(lines.includes(line), `${line} was acknowledged, and is lost`);
  for (const line of lines)
    assert.ok(done.includes(line) || unknown.includes(line), `${line} was never said to be done`);
  const tokens = lines.map((line) => Number.parseInt(line, 10));
  assert.deepEqual(
    tokens,
    [...tokens].sort((a, b) => a - b),
    "nobody who is late gets in",
  );
  await guard.removeGarbage(resource);
  assert.equal(String((await guard.readNewest(resource)) ?? ""), text, "the content is no garbage");
  const data = [...store.objects.keys()].filter((key) => key.startsWith("holdfast/doc/data/"));
  if (store.objects.has(pointerKey))
    assert.equal(data.length, lines.length === 0 ? data.length : 1, "and nothing else stays");
}
