/** What the one suite needs of a store: guarded operations on a text and on a list of lines, and a look past the guard. */
import type { Fence, ReportingOptions } from "@holdfast/fence";

/** A fence as lock handles give it. */
export type NamedFence = Fence & { readonly resource: string };

export interface Stored {
  readonly body: string | null;
  readonly lines: readonly string[];
  /** What the register holds, as a number; null when there is none. */
  readonly token: number | null;
}

/** One process's view of a store. Its guards report to what `open` was given. */
export interface GuardedStore {
  /** Replaces the text, guarded. */
  write(fence: NamedFence, body: string): Promise<void>;
  /** The text, guarded. */
  read(fence: NamedFence): Promise<string | null>;
  /** Adds a line, guarded: by a read and a write, or by what the store has for it. */
  append(fence: NamedFence, line: string): Promise<void>;
  /** Removes the data, guarded. */
  remove(fence: NamedFence): Promise<void>;
  /** Replaces the texts of several resources in one transaction. Called only where `changesSeveral`. */
  writeAll(fences: readonly NamedFence[], body: string): Promise<void>;
  /** All of one resource at one moment, past the guard. */
  stored(resource: string): Promise<Stored>;
  close(): Promise<void>;
}

/** A running store that any process can open. */
export interface Place {
  /** For `open`, in this process or another. */
  readonly address: string;
  stop(): Promise<void>;
  /** Kills the store's server as it is, starts it again, and resolves when it serves. Called only where `crashes`. */
  crash(): Promise<void>;
}

export interface StoreKind {
  /** As writer.ts is told. */
  readonly kind: string;
  /** As its reports say. */
  readonly guard: string;
  /** Whether the register outlives the data. Where the fence lies in the data's own row it can't. */
  readonly remembersRemoved: boolean;
  /** Several resources in one transaction. */
  readonly changesSeveral: boolean;
  /** There is a server of ours that can be killed. */
  readonly crashes: boolean;
  /** The guard is in the server and not in who calls it: what `open` was given hears nothing. */
  readonly reportsElsewhere?: boolean;
  /** Names come in sequencers, so they are names of locks: without control characters. */
  readonly takesLockNames?: boolean;
  /** Why it can't run here, or false. */
  readonly skip: string | false;
  start(): Promise<Place>;
  open(address: string, reporting: ReportingOptions): Promise<GuardedStore>;
}

/** For what a kind says it hasn't: a test that calls it all the same fails. */
export async function unavailable(): Promise<never> {
  throw new Error("this store has no such operation");
}

export const tokenMax = Number.MAX_SAFE_INTEGER;
