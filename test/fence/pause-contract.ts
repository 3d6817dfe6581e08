/** The old holder is stopped at any moment of its work, its successor writes, and the old one goes on: what guards are for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../harness/until.js";
import { freshResource } from "./subject.js";
import type { Subject } from "./subject.js";
import { newLines } from "./work.js";
import { WriterProcess } from "./writer-process.js";

/** Each costs the start of two processes. */
const pauses = 4;
/** A holder that is stopped inside its transaction holds its row, and the successor waits for it: for so long, then it may go on. */
const stoppedMsMax = 1_500;

export function pauseTests(subject: Subject): void {
  test("a holder stopped at any moment writes nothing after its successor's first write", async () => {
    const { kind, place, store } = subject;
    for (let pause = 0; pause < pauses; pause += 1) {
      const resource = freshResource();
      const task = { kind: kind.kind, address: place.address, resource };
      const old = new WriterProcess({ ...task, work: "old-holder" });
      const successor = new WriterProcess({ ...task, work: "successor" });
      try {
        await Promise.all([old.ready(), successor.ready()]);
        old.go();
        await until("the old holder has written", () => old.acknowledged() > pause * 2, 60_000, 1);
        await sleep(pause / 3);
        old.signal("SIGSTOP");
        successor.go();
        await Promise.race([successor.ended(), sleep(stoppedMsMax)]);
        old.signal("SIGCONT");
        await successor.ended();
        assertFenced((await store.stored(resource)).lines, await old.ended());
        assert.equal((await store.stored(resource)).token, 11);
      } finally {
        old.kill();
        successor.kill();
      }
    }
  });
}

/** What was acknowledged stands, in order and before the successor's; what wasn't may stand if its answer was lost; nothing else does. */
function assertFenced(lines: readonly string[], said: readonly string[]): void {
  assert.equal(said.at(-1), "refused: 10 below 11", "the old holder is refused in the end");
  const answers = said.slice(1, -1);
  const written = answers.flatMap((answer, at) =>
    answer !== "unknown" || lines.includes(`old ${at + 1}`) ? [`old ${at + 1}`] : [],
  );
  assert.deepEqual(lines, [...written, ...newLines]);
}
