/**
 * Keeps what nodes write to their logs, although they remove what a snapshot covers. A hard link keeps each file of their databases, with what
 * is appended to it later, for nothing but its space; no node notices. A file may be gone before it is linked, when LevelDB compacts: what was
 * in it then stands in another one, for as long as the node has not removed it, and that is longer than a look takes.
 */
import { linkSync, mkdirSync, readdirSync, rmSync, statSync, watch } from "node:fs";
import type { FSWatcher } from "node:fs";
import { join } from "node:path";
import type { Entry } from "@holdfast/raft";
import { readWrittenBlocks, StorageError } from "@holdfast/storage";
import type { Block } from "@holdfast/storage";

/** How soon a new database is found; its new files are linked when they are made. */
export const keepEveryMs = 100;

export class WrittenLogs {
  private readonly folder: string;
  /** Database -> who tells of its new files. */
  private readonly watchers = new Map<string, { readonly inode: number; readonly watcher: FSWatcher }>();

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
    unlessRefused(() => this.watch(node, from));
    this.linkAll(node, from);
  }

  /** Nothing new is kept any more. */
  stop(): void {
    for (const { watcher } of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  /** Every block of entries that is known to have been written by this node. */
  async blocksOf(node: string): Promise<readonly Block[]> {
    const folder = join(this.folder, node);
    const blocks: Block[] = [];
    for (const name of namesIn(folder).sort()) blocks.push(...(await blocksIn(join(folder, name))));
    return blocks;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private watch(node: string, from: string): void {
    const inode = statSync(from).ino;
    const known = this.watchers.get(from);
    if (known?.inode === inode) return;
    known?.watcher.close();
    const watcher = watch(from, { persistent: false }, () => this.linkAll(node, from));
    // What it no longer tells of shows in wholeLog.
    watcher.on("error", () => watcher.close());
    this.watchers.set(from, { inode, watcher });
  }

  private linkAll(node: string, from: string): void {
    for (const name of namesIn(from)) if (/\.(log|ldb)$/.test(name)) this.link(node, join(from, name), name);
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

/** Nothing of a file that its writer didn't finish when it was killed: what is missing for that shows in wholeLog. */
async function blocksIn(file: string): Promise<readonly Block[]> {
  try {
    return await readWrittenBlocks(file);
  } catch (error) {
    if (error instanceof StorageError) return [];
    throw error;
  }
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
