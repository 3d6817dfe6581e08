/**
 * Ends the work of this process on files at its n-th step, as a kill would: that step and all later ones fail, and a file that is
 * being written is left half written. Steps are the calls of node:fs/promises and of file handles that change something; what LevelDB
 * does inside itself is not among them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import fsp from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

type Call = (...parameters: unknown[]) => Promise<unknown>;
type Calls = Record<string, Call>;

const changing = {
  module: ["mkdir", "open", "rename", "rm", "writeFile"],
  handle: ["sync", "write", "writeFile", "truncate"],
} as const;

export class Crash extends Error {}

async function handlePrototype(): Promise<object> {
  const path = join(tmpdir(), `holdfast-handle-${process.pid}`);
  writeFileSync(path, "");
  const handle = await fsp.open(path);
  await handle.close();
  await fsp.rm(path);
  return Object.getPrototypeOf(handle) as object;
}

/** Returns how many steps were done. Rejects with what `run` rejects with. `failing` counts from 1; Infinity lets all pass. */
export async function withFailpoint(failing: number, run: () => Promise<void>): Promise<number> {
  const handles = await handlePrototype();
  let steps = 0;
  const undo: (() => void)[] = [];
  const wrap = (target: Calls, names: readonly string[]): void => {
    for (const name of names) {
      const original = target[name];
      assert(original !== undefined, `there is a ${name}`);
      target[name] = async function (this: unknown, ...parameters) {
        steps++;
        if (steps < failing) return await original.apply(this, parameters);
        const [bytes] = parameters;
        if (steps === failing && name === "writeFile" && bytes instanceof Uint8Array) {
          await original.call(this, bytes.subarray(0, bytes.length >> 1));
        }
        throw new Crash(`step ${steps}: ${name}`);
      };
      undo.push(() => void (target[name] = original));
    }
  };
  wrap(fsp as unknown as Calls, changing.module);
  wrap(handles as Calls, changing.handle);
  syncBuiltinESMExports();
  try {
    await run();
  } finally {
    for (const restore of undo) restore();
    syncBuiltinESMExports();
  }
  return steps;
}
