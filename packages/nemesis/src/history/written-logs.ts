/**
 * Keeps what nodes write to their logs, although they remove what a snapshot covers. LevelDB appends to `.log` files and then deletes them:
 * a hard link keeps each of them, from its first moment on, for nothing but its space. No node notices.
 */
import { linkSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "@holdfast/raft";
import { readWrittenBlocks } from "@holdfast/storage";
import type { Block } from "@holdfast/storage";

/** LevelDB keeps a file for megabytes of writes, or until the next start: far longer than this. */
export const keepEveryMs = 100;

export class WrittenLogs {
  private readonly folder: string;

  /** `folder` is made when the first file is kept; on the file system of the data directories. */
  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Links what is new in this node's data directory. Nothing is said of what can't be: on another file system, gone in between, or no
   * database yet. What is missing for that shows in wholeLog.
   */
  keep(node: string, directory: string): void {
    const from = join(directory, "db");
    for (const name of namesIn(from)) {
      if (name.endsWith(".log")) this.link(node, join(from, name), name);
    }
  }

  /** Every block of entries that is known to have been written by this node. */
  async blocksOf(node: string): Promise<readonly Block[]> {
    const folder = join(this.folder, node);
    const blocks: Block[] = [];
    for (const name of namesIn(folder).sort()) blocks.push(...(await readWrittenBlocks(join(folder, name))));
    return blocks;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private link(node: string, file: string, name: string): void {
    unlessRefused(() => {
      const to = join(this.folder, node);
      mkdirSync(to, { recursive: true });
      // A directory that was emptied begins to count anew; a linked inode never comes again.
      linkSync(file, join(to, `${statSync(file).ino}-${name}`));
    });
  }
}

/**
 * The entries from the first one to the end of `tail`. Behind `base` they stand in `tail`; up to it they are looked for among the blocks, from
 * its chain value back to the beginning: whatever else was written at these indexes never became part of this log. Null: one is missing.
 */
export function wholeLog(
  base: { readonly index: number; readonly chain: number },
  tail: readonly Entry[],
  blocks: readonly Block[],
): readonly Entry[] | null {
  const known = new Map<string, { readonly entry: Entry; readonly previousChain: number }>();
  for (const { entries, previousChain } of blocks) {
    let chain = previousChain;
    for (const entry of entries) {
      known.set(`${entry.index} ${entry.chain}`, { entry, previousChain: chain });
      chain = entry.chain;
    }
  }
  const before: Entry[] = [];
  let { chain } = base;
  for (let { index } = base; index > 0; index -= 1) {
    const found = known.get(`${index} ${chain}`);
    if (found === undefined) return null;
    before.push(found.entry);
    chain = found.previousChain;
  }
  return [...before.reverse(), ...tail];
}

function namesIn(folder: string): string[] {
  return unlessRefused(() => readdirSync(folder)) ?? [];
}

/** Null: the operating system has refused it. */
function unlessRefused<Result>(act: () => Result): Result | null {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return null;
    throw error;
  }
}
