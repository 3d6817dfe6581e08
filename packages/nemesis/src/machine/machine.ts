/** Faults of the machine under a process: its disk, its scheduling, its clocks, its files. Each may be out of reach on a given machine. */
import type { Party } from "../network/network.js";

export type MachineFault =
  /** Writes fail with ENOSPC until cleared. */
  | { readonly kind: "diskFull" }
  /** Each sync takes so much longer. */
  | { readonly kind: "slowSync"; readonly ms: number }
  /** Each sync fails with EIO until cleared. */
  | { readonly kind: "failSync" }
  /** By the cgroup freezer: unlike SIGSTOP no parent is told, and no signal ends it. */
  | { readonly kind: "frozen" }
  /** Wall time alone jumps by so much, back or forth; cleared, it jumps back. */
  | { readonly kind: "wallJump"; readonly ms: number }
  /** All clocks of the process run so many times as fast; from a start to its end only (`launch`). */
  | { readonly kind: "clockRate"; readonly rate: number };

export type MachineFaultKind = MachineFault["kind"];

/** How a process is started. */
export interface Launch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Of its data. A disk of its own is mounted here when a fault needs one. */
  readonly directory: string;
}

/** A running process. */
export interface Target {
  readonly party: Party;
  readonly pid: number;
  readonly directory: string;
}

export interface MachineFaults {
  /** Null when this machine lets us inject it, else why not: a scenario that needs it is skipped by that reason. */
  missing(kind: MachineFaultKind): Promise<string | null>;
  /**
   * Makes a process ready for faults that come later, and for those that hold from its start (`clockRate`). Called before each start, with
   * all kinds that the scenario ever injects into this party.
   */
  launch(party: Party, launch: Launch, faults: readonly MachineFault[]): Promise<Launch>;
  /** Begins a fault. For `clockRate` nothing: it holds since the start. */
  begin(target: Target, fault: MachineFault): Promise<void>;
  /** Ends it; the process may have died of it meanwhile. */
  end(target: Target, kind: MachineFaultKind): Promise<void>;
  /**
   * How often the fault has bitten this party so far: writes refused, syncs slowed or failed. Null when that can't be counted. A fault
   * that never bit has tested nothing.
   */
  bites(party: Party, kind: MachineFaultKind): Promise<number | null>;
  /** Of a stopped node's files. */
  damage(directory: string, damage: Damage): Promise<DamageReport>;
  /** Ends all faults and removes what was mounted, built or made. */
  close(): Promise<void>;
}

/** What is done to a stopped node's files. */
export type Damage = "logBit" | "tableBit" | "currentMissing" | "manifestTorn" | "directoryEmpty";

export interface DamageReport {
  /** Relative to the directory; null: there was no such file, and nothing was done. */
  readonly file: string | null;
  /** For people. */
  readonly what: string;
}
