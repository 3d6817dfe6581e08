/** A real process on a real disk, really killed, or without room for what it writes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
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

/** Files can't grow beyond this: to a program that is what a full disk does. Runs the child until it ends by that; returns its lines. */
async function runUntilFull(directory: string, fileKib: number): Promise<string[]> {
  const words = ["-c", `ulimit -f ${fileKib} && exec "$0" "$@"`, process.execPath, child, directory];
  const running = spawn("bash", words, { stdio: ["ignore", "pipe", "pipe"] });
  const [output, said, [code]] = await Promise.all([
    text(running.stdout),
    text(running.stderr),
    once(running, "exit") as Promise<[number | null]>,
  ]);
  assert.notEqual(code, 0);
  assert.match(said, /StorageError: (a write to the database|opening the data directory \S+) failed: IO error: /);
  assert.match(said, /code: 'io'/);
  return output.split("\n").slice(0, -1);
}

/** What a start finds is the state of the last write that was done, or of one that was under way. Returns its base, and which it is. */
async function assertFound(
  directory: string,
  lines: readonly string[],
): Promise<{ base: number; unfinished: boolean }> {
  const lastDone = lines.lastIndexOf("done");
  const allowed = [lines[lastDone - 1], ...lines.slice(lastDone + 1)];
  const { opened, restored } = await openFormed(directory);
  const { base, entries, hardState } = restored;
  const end = endOf(entries, base);
  const state = { last: end.index, chain: end.chain, term: hardState.term, base: base.position.index };
  const found = JSON.stringify(state);
  assert(allowed.includes(found), `${found} is one of ${allowed.join(" and ")}`);
  await opened.close();
  return { base: state.base, unfinished: allowed.length > 1 };
}

test("kill -9 at any moment: what was acknowledged is there, and nothing else", async () => {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-kill-"));
  let unfinished = 0;
  let bases = 0;
  try {
    for (const writes of [1, 40, 3, 15, 70, 25]) {
      const lines = await runAndKill(directory, writes);
      assert(lines.length > writes, "it wrote");
      const found = await assertFound(directory, lines);
      if (found.unfinished) unfinished++;
      bases = found.base;
    }
    assert(unfinished > 0, "a write was under way at some kill");
    assert(bases > 0, "a snapshot was taken");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a full disk, wherever a write is cut off: what was acknowledged is there, and nothing is taken for damage", async () => {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-full-"));
  try {
    for (const fileKib of [40, 97, 300]) {
      const lines = await runUntilFull(directory, fileKib);
      assert(lines.includes("done"), "it wrote");
      // It is started again while there is still no space, now for the table that a start makes of the log.
      const again = await runUntilFull(directory, 12);
      await assertFound(directory, [...lines, ...again]);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
