/**
 * What nodes say to each other: hello and formation, then the core's messages. Each frame carries a crc32c; a bad one
 * closes the link.
 */
import type { VersionRange } from "@holdfast/lock";
import type { Configuration, Message, Position } from "@holdfast/raft";

/** First in both directions on a peer link. */
export interface PeerHello {
  readonly kind: "hello";
  readonly protocol: number;
  readonly cluster: string;
  readonly from: string;
  readonly to: string;
  readonly instance: string;
  /** Null before the cluster is formed. */
  readonly clusterId: string | null;
  /** Number of this process's start: a lower one than known is an old copy of the directory. */
  readonly boot: number;
  /**
   * The sender's durable term and last log position: lower ones than it promised before are an old copy too. Null
   * before formation.
   */
  readonly term: number | null;
  readonly last: Position | null;
  /** The cluster versions that it can run; releases that don't say it run the first. */
  readonly versions: VersionRange;
  /**
   * Where it takes calls, "host:port": whoever has no member of that id in its log yet can call back. Releases before
   * don't say it.
   */
  readonly peer?: string;
}

/** A closed union: why a link is refused. The refused node ends with that sentence if it is at fault. */
export type PeerRefusalCode =
  | "wrong_cluster"
  | "wrong_instance"
  | "old_copy"
  | "unknown_node"
  | "wrong_address"
  | "incompatible"
  /** It can't run the version that the cluster has reached. */
  | "wrong_version"
  /** Its removal is committed: an id never comes back. */
  | "removed"
  | "unauthorized";

export type PeerFrame =
  | PeerHello
  | { readonly kind: "refused"; readonly code: PeerRefusalCode; readonly problem: string }
  /**
   * What a node without a log begins with, from whoever made the first configuration or is formed already.
   * `firstIndex` is the index of the log's first entry, `configuration` the one in force.
   */
  | {
      readonly kind: "formed";
      readonly clusterId: string;
      readonly firstIndex: number;
      readonly configuration: Configuration;
      /** The one before the first entry, while the sender still knows it; without it `configuration` stands in. */
      readonly firstConfiguration?: Configuration;
    }
  /** Said before an orderly close, so that the close is no sign of a death. */
  | { readonly kind: "goodbye" }
  | { readonly kind: "raft"; readonly messages: readonly Message[] };
