/** A real process, really killed, on a real disk. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { endOf, openFormed } from "./fixture.js";

const child = fileURLToPath(new URL("./kill-child.js", import.meta.url));

/** Runs the child until it has finished this many writes, and kills it. Returns the lines that it printed. */
async function runAndKill(directory: string, writes: number): Promise<string[]> {
  const running = spawn(process.execPath, [child, directory], { stdio: ["ignore", "pipe", "inherit"] });
  const exit = once(running, "exit");
  let output = "";
  let done = 0;
  for await (const part of running.stdout as AsyncIterable<Buffer>) {
    output += part.toString("latin1");
    done = output.split("done\n").length - 1;
    if (done >= writes) running.kill("SIGKILL");
  }
  assert.deepEqual(await exit, [null, "SIGKILL"]);
  // A line that the kill cut off stands for a write that was not begun.
  return output.split("\n").slice(0, -1);
}

test("kill -9 at any moment: what was acknowledged is there, and nothing else", async () => {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-kill-"));
  let unfinished = 0;
  let bases = 0;
  try {
    for (const writes of [1, 40, 3, 15, 70, 25]) {
      const lines = await runAndKill(directory, writes);
      assert(lines.length > writes, "it wrote");
      const lastDone = lines.lastIndexOf("done");
      const allowed = [lines[lastDone - 1], lines[lastDone + 1]];
      const { opened, restored } = await openFormed(directory);
      const { base, entries, hardState } = restored;
      const end = endOf(entries, base);
      const found = JSON.stringify({
        last: end.index,
        chain: end.chain,
        term: hardState.term,
        base: base.position.index,
      });
      assert(allowed.includes(found), `${found} is one of ${allowed.join(" and ")}`);
      if (allowed[1] !== undefined) unfinished++;
      bases = base.position.index;
      await opened.close();
    }
    assert(unfinished > 0, "a write was under way at some kill");
    assert(bases > 0, "a snapshot was taken");
  } finally {
    await rm(directory, { recursive: true });
  }
});
