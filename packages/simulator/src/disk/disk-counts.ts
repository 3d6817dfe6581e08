/** How often each thing happened to a disk: a fault counts only when it bites. */
import type { Rot } from "./rot.js";

interface WriteFate {
  kept: number;
  dropped: number;
}

export interface DiskCounts {
  /** Writes that returned. */
  writes: number;
  /** Those of them that a lying disk kept in its cache. */
  unsyncedWrites: number;
  readonly failedWrites: { readonly io: WriteFate; readonly full: WriteFate };
  /** Writes that were held up by a stall. */
  stalledWrites: number;
  failedReads: number;
  failedOpens: number;
  /** A running node came upon rot. */
  damagedReads: number;
  opens: number;
  readonly refusedOpens: { locked: number; io: number; quarantined: number; damaged: number };
  /** Kills (and power losses) with a write in flight. */
  readonly killsInFlight: WriteFate;
  powerLosses: number;
  /** Batches that a power loss took although their writes had returned. */
  lostBatches: number;
  /** Batches that a power loss took and nobody had been told of. */
  lostUnpromised: number;
  /** Power losses after which the mark was an older one. */
  marksFallenBack: number;
  /** Starts after a loss of promised batches that the mark did not give away. */
  silentLosses: number;
  restores: number;
  readonly rots: Record<Rot, number>;
}

export function newCounts(): DiskCounts {
  return {
    writes: 0,
    unsyncedWrites: 0,
    failedWrites: { io: { kept: 0, dropped: 0 }, full: { kept: 0, dropped: 0 } },
    stalledWrites: 0,
    failedReads: 0,
    failedOpens: 0,
    damagedReads: 0,
    opens: 0,
    refusedOpens: { locked: 0, io: 0, quarantined: 0, damaged: 0 },
    killsInFlight: { kept: 0, dropped: 0 },
    powerLosses: 0,
    lostBatches: 0,
    lostUnpromised: 0,
    marksFallenBack: 0,
    silentLosses: 0,
    restores: 0,
    rots: { flip: 0, hole: 0, file: 0, chunk: 0, mark: 0, markFile: 0, identity: 0 },
  };
}
