/** What a NodeHost is made of. */
import type { LockMachine, VersionRange } from "@holdfast/lock";
import type { EntryCodec, NodeId, Position, RaftOptions, Random, Restored, RoleName } from "@holdfast/raft";
import type { Store } from "@holdfast/storage";
import type { Effect } from "@holdfast/lock";
import type { GatewayOptions } from "./gateway-host.js";
import type { Clock, Logger, PeerLinks } from "./ports.js";
import type { SnapshotOptions } from "./snapshot-keeper.js";

export interface NodeHostOptions {
  readonly clusterId: string;
  /** The cluster versions that this node can run. */
  readonly versions: VersionRange;
  readonly raft: RaftOptions;
  readonly gateway: GatewayOptions;
  /** A leader with more entries that it has not applied takes no acquires. */
  readonly unappliedEntriesMax: number;
  readonly snapshots: SnapshotOptions;
  /** Payload bytes of one synced batch. */
  readonly writeBytesMax: number;
}

export interface NodeHostParts {
  readonly clock: Clock;
  readonly random: Random;
  /** 32 bytes that nobody can guess. */
  drawSeed(): Uint8Array;
  readonly codec: EntryCodec;
  readonly store: Store;
  readonly restored: Restored;
  /** The lock machine at `restored.base`. */
  readonly machine: LockMachine;
  readonly links: PeerLinks & {
    /** What a peer has promised is durable: an older directory of it is refused at its next hello. */
    notePromise(peer: NodeId, promise: { readonly term: number; readonly last: Position }): void;
    /** The peers with which links stand in both directions. */
    met(): ReadonlyMap<NodeId, { readonly versions: VersionRange }>;
  };
  readonly logger: Logger;
  readonly metrics: HostMetrics;
}

export interface HostMetrics {
  observeFsync(seconds: number): void;
  observeAppend(peer: NodeId, seconds: number): void;
  noteEffects(effects: readonly Effect[], isServing: boolean): void;
  noteRole(role: RoleName): void;
}

/** Why a host has stopped. */
export type StopReason =
  | { readonly kind: "asked" }
  /** This node was removed from the cluster, and that is committed. */
  | { readonly kind: "removed" }
  | { readonly kind: "storage"; readonly error: unknown }
  | { readonly kind: "internal"; readonly error: unknown };
