/** Many writers with mixed tokens at once, in one process and in several. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freshResource } from "./subject.js";
import type { ContractOptions, Subject } from "./subject.js";
import { mixedWriters, tokensOfMixed } from "./work.js";
import type { MixedResult } from "./work.js";
import { WriterProcess } from "./writer-process.js";

export function raceTests(subject: Subject, options: ContractOptions): void {
  test("100 concurrent writers with mixed tokens: accepted tokens never fall, and no accepted update is lost", async () => {
    const resource = freshResource();
    await assertHistory(subject, resource, [await mixedWriters(subject.store, resource, 0, 100)]);
  });

  if (options.isOneProcess === true) return;
  test("the same from four processes", async () => {
    const resource = freshResource();
    const { kind, place } = subject;
    const writers = [0, 25, 50, 75].map(
      (from) =>
        new WriterProcess({ kind: kind.kind, address: place.address, resource, work: "mixed", from, to: from + 25 }),
    );
    try {
      await Promise.all(writers.map((writer) => writer.ready()));
      for (const writer of writers) writer.go();
      const said = await Promise.all(writers.map((writer) => writer.ended()));
      await assertHistory(
        subject,
        resource,
        said.map((lines) => JSON.parse(lines.at(-1) ?? "") as MixedResult),
      );
    } finally {
      for (const writer of writers) writer.kill();
    }
  });
}

async function assertHistory({ store }: Subject, resource: string, results: readonly MixedResult[]): Promise<void> {
  const accepted = results.flatMap((result) => result.accepted);
  const refused = results.reduce((sum, result) => sum + result.refused, 0);
  const { lines, token } = await store.stored(resource);
  const tokens = lines.map((line) => Number.parseInt(line, 10));
  assert.deepEqual(
    tokens,
    [...tokens].sort((a, b) => a - b),
    "accepted tokens never fall",
  );
  assert.deepEqual([...lines].sort(), accepted.sort(), "what is stored and what was acknowledged agree");
  assert.equal(accepted.length + refused, 100);
  // The greatest token is never refused, and its five writers are among those accepted.
  assert.ok(accepted.length >= 5, `${accepted.length} accepted, ${refused} refused`);
  assert.equal(token, tokensOfMixed);
}
