/** The committed log, read from the data directories of stopped nodes, and the lock machine's word on each of its entries. */
import type { Effect } from "@holdfast/checker";
import { LockMachine } from "@holdfast/lock";
import type { Entry } from "@holdfast/raft";
import { openStoppedDirectory, readMachineBootId } from "@holdfast/storage";
import { decodeCommand } from "@holdfast/wire";
import type { UntimedEvent } from "../worker/protocol.js";

export interface NodeLog {
  readonly node: string;
  /** From the first index on; null when a snapshot has taken the place of its beginning. */
  readonly entries: readonly Entry[] | null;
}

/** Rejects with StorageError for a directory that no node would start from. */
export async function readNodeLog(node: string, directory: string): Promise<NodeLog> {
  const opened = await openStoppedDirectory({ directory, machineBootId: readMachineBootId(), force: false });
  try {
    const { base, entries } = opened.restored;
    const own = entries.filter(({ index }) => index > base.position.index);
    return { node, entries: base.position.index === 0 ? own : null };
  } finally {
    await opened.close();
  }
}

export interface Replayed {
  readonly event: UntimedEvent & { readonly kind: "committed" };
  readonly effects: readonly Effect[] | null;
  readonly stateHash: string | null;
}

/** How often the state's hash is taken: it walks everything. */
const hashEvery = 500;

/** The entries up to the commit index, applied in order. */
export function replay(entries: readonly Entry[], commitIndex: number): readonly Replayed[] {
  const machine = new LockMachine();
  const committed = entries.filter(({ index }) => index <= commitIndex);
  return committed.map((entry) => {
    const { index, term, chain, kind } = entry;
    const isLast = index === committed.at(-1)?.index;
    const command = kind === "command" ? decodeCommand(entry.payload) : null;
    const effects = command === null ? null : machine.apply(index, command);
    const stateHash = isLast || index % hashEvery === 0 ? machine.stateHash() : null;
    const said =
      command === null ? ({ kind: kind as "noop" | "configuration" } as const) : { kind: "command" as const, command };
    return {
      event: { kind: "committed", index, term, hash: String(chain), decidedInTerm: null, entry: said },
      effects,
      stateHash,
    };
  });
}

/** What a node's own log says that it has applied: compared with the committed entries by the checker. */
export function appliedBy(
  { node, entries }: NodeLog,
  lastApplied: number,
  told: readonly Replayed[] | null,
): UntimedEvent[] {
  const applied = (entries ?? []).filter(({ index }) => index <= lastApplied);
  return applied.map(({ index, chain }, at) => {
    const word = told?.[at] ?? null;
    const { effects = null, stateHash = null } = word ?? {};
    return { kind: "applied", node, index, hash: String(chain), stateHash, effects };
  });
}
