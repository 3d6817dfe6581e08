/** The committed log, read from the data directories of stopped nodes, and the lock machine's word on each of its entries. */
import type { Effect } from "@holdfast/checker";
import { LockMachine, SnapshotLoader } from "@holdfast/lock";
import type { SnapshotPiece } from "@holdfast/lock";
import type { Entry } from "@holdfast/raft";
import { openStoppedDirectory, readMachineBootId } from "@holdfast/storage";
import type { StoppedDirectory } from "@holdfast/storage";
import { decodeCommand, decodeSnapshotPiece } from "@holdfast/wire";
import type { UntimedEvent } from "../worker/protocol.js";
import { wholeLog } from "./written-logs.js";
import type { WrittenLogs } from "./written-logs.js";

export interface NodeLog {
  readonly node: string;
  /** The last entry that a snapshot covers, and the chain value there; 0: there is no snapshot. */
  readonly baseIndex: number;
  readonly baseChain: number;
  /** Of the state in that snapshot; null when there is none. */
  readonly baseHash: string | null;
  /** What the directory holds behind `baseIndex`. */
  readonly tail: readonly Entry[];
  /** Of the state when `tail` is applied, as far as the node had applied it, on top of the snapshot. */
  readonly stateHash: string;
  /** From the first entry on, with those that the node has removed since; null when one of these is known no more. */
  readonly entries: readonly Entry[] | null;
  /** False: some of `entries` are known from another node alone. */
  readonly isOwn: boolean;
}

/** Of a node at rest, after the run. */
export interface FinalState {
  readonly node: string;
  readonly commitIndex: number;
  readonly lastApplied: number;
}

/**
 * Of all nodes. When none of them is known to have written everything itself, the one that reaches farthest is completed by what the others
 * wrote: equal chain values say that it is the same log. Rejects as readNodeLog.
 */
export async function readNodeLogs(
  finals: readonly FinalState[],
  directoryOf: (node: string) => string,
  written: WrittenLogs,
): Promise<readonly NodeLog[]> {
  const logs = await Promise.all(finals.map((final) => readNodeLog(final, directoryOf(final.node), written)));
  const farthest = logs.toSorted((one, other) => endOf(other) - endOf(one))[0];
  if (farthest === undefined || logs.some((log) => log.entries !== null && endOf(log) === endOf(farthest))) return logs;
  const blocks = (await Promise.all(logs.map(({ node }) => written.blocksOf(node)))).flat();
  const { baseIndex: index, baseChain: chain, tail } = farthest;
  const completed = { ...farthest, entries: wholeLog({ index, chain }, tail, blocks), isOwn: false };
  return logs.map((log) => (log === farthest ? completed : log));
}

function endOf({ baseIndex, tail }: NodeLog): number {
  return tail.at(-1)?.index ?? baseIndex;
}

/** `written`: what nodes were seen to write while they ran. Rejects with StorageError for a directory that no node would start from. */
export async function readNodeLog(
  { node, lastApplied }: FinalState,
  directory: string,
  written: WrittenLogs,
): Promise<NodeLog> {
  const opened = await openStoppedDirectory({ directory, machineBootId: readMachineBootId(), force: false });
  try {
    const { base, entries } = opened.restored;
    const { index: baseIndex } = base.position;
    const tail = entries.filter(({ index }) => index > baseIndex);
    const machine = await machineIn(opened.store);
    const baseHash = baseIndex === 0 ? null : machine.stateHash();
    const blocks = baseIndex === 0 ? [] : await written.blocksOf(node);
    const whole = wholeLog({ index: baseIndex, chain: base.chain }, tail, blocks);
    for (const { index, kind, payload } of tail) {
      if (kind === "command" && index <= lastApplied) machine.apply(index, decodeCommand(payload));
    }
    return {
      node,
      baseIndex,
      baseChain: base.chain,
      baseHash,
      tail,
      stateHash: machine.stateHash(),
      entries: whole,
      isOwn: true,
    };
  } finally {
    await opened.close();
  }
}

/** As its snapshot has it; without one a machine that has applied nothing. */
async function machineIn(store: StoppedDirectory["store"]): Promise<LockMachine> {
  const { snapshot } = store;
  if (snapshot === null) return new LockMachine();
  const { index } = snapshot.base.position;
  const loader = new SnapshotLoader();
  for (let chunk = 0; chunk < snapshot.chunks; chunk += 1) {
    const bytes = await store.readChunk(index, chunk);
    if (bytes === null) throw new Error(`chunk ${chunk} of the snapshot of index ${index} is missing`);
    loader.push(decodeSnapshotPiece(bytes) as SnapshotPiece);
  }
  return loader.finish();
}

export interface Replayed {
  readonly event: UntimedEvent & { readonly kind: "committed" };
  readonly effects: readonly Effect[] | null;
  readonly stateHash: string | null;
}

/** How often the state's hash is taken: it walks everything. */
const hashEvery = 500;

/** The entries up to the commit index, applied in order from the first one on. The state is told at `hashAt` too. */
export function replay(
  entries: readonly Entry[],
  commitIndex: number,
  hashAt: ReadonlySet<number> = new Set(),
): readonly Replayed[] {
  const machine = new LockMachine();
  const committed = entries.filter(({ index }) => index <= commitIndex);
  return committed.map((entry) => {
    const { index, term, chain, kind } = entry;
    const isLast = index === committed.at(-1)?.index;
    const command = kind === "command" ? decodeCommand(entry.payload) : null;
    const effects = command === null ? null : machine.apply(index, command);
    const stateHash = isLast || index % hashEvery === 0 || hashAt.has(index) ? machine.stateHash() : null;
    const said =
      command === null ? ({ kind: kind as "noop" | "configuration" } as const) : { kind: "command" as const, command };
    return {
      event: { kind: "committed", index, term, hash: String(chain), decidedInTerm: null, entry: said },
      effects,
      stateHash,
    };
  });
}

/**
 * What a node's directory says that it has applied: compared with the committed entries by the checker. A snapshot in it takes the place of
 * the machine that had applied what it covers. `told`: what the machine said of each committed entry, for one of the nodes.
 */
export function appliedBy(log: NodeLog, lastApplied: number, told: readonly Replayed[] | null): UntimedEvent[] {
  const { node, baseIndex, baseHash, tail, entries } = log;
  const applied = (entries ?? tail).filter(({ index }) => index <= lastApplied);
  const events = applied.map(({ index, chain }): UntimedEvent => {
    const { effects = null, stateHash = null } = told?.[index - 1] ?? {};
    return { kind: "applied", node, index, hash: String(chain), stateHash, effects };
  });
  const covered = applied.filter(({ index }) => index <= baseIndex).length;
  const snapshot: UntimedEvent[] =
    baseHash === null ? [] : [{ kind: "installed", node, index: baseIndex, stateHash: baseHash }];
  // A life of its machine: it begins with nothing, and is read from the directory.
  return [{ kind: "started", node, index: 0 }, ...events.slice(0, covered), ...snapshot, ...events.slice(covered)];
}
