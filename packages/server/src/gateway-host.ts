/** What the client gateway is given, and what it asks of the host. */
import type { Command, LockMachine, SessionId } from "@holdfast/lock";
import type { MembershipChange } from "@holdfast/raft";
import type { MembersView, NodeAddress, NodeStatus, Refusal } from "@holdfast/wire";
import type { ChangeResult } from "./membership.js";
import type { ClientConnection, ClientFrame } from "./ports.js";
import type { SigningKeys } from "./signing-keys.js";

export interface GatewayOptions {
  readonly nodeId: string;
  readonly version: string;
  readonly ttlMsMin: number;
  readonly ttlMsMax: number;
  readonly sessionsMax: number;
}

/** What the gateway asks of the host; all of it within the host's turn. */
export interface GatewayHost {
  readonly machine: LockMachine;
  readonly isLeader: boolean;
  /** Leads, and its own term's no-op is applied: its state is no older than any answer given before. */
  readonly isServing: boolean;
  readonly leader: NodeAddress | null;
  readonly nodes: readonly NodeAddress[];
  readonly clusterId: string;
  readonly lastApplied: number;
  /** It leads, and has as much to apply as it takes. */
  readonly isOverloaded: boolean;
  status(): NodeStatus;
  /** `payload`: the command's bytes as they came. `onRefused` runs in the same turn if the entry did not enter the log. */
  proposeClients(command: Command, payload: Uint8Array, reserved: boolean, onRefused: (refusal: Refusal) => void): void;
  proposeForced(command: Command, onRefused: (refusal: Refusal) => void): void;
  /** In this term or not at all. */
  proposeOwn(command: Command, onRefused: (refusal: Refusal) => void): void;
  /** Null when a command of this kind may be proposed, else why not: `what` needs another cluster version. */
  gate(kind: Command["kind"], what: string): Refusal | null;
  /** Of the cluster, as this node has applied them. */
  readonly signingKeys: Pick<SigningKeys, "newKey" | "sign" | "check">;
  /** A new cluster, and its first session waits until its version is raised. */
  readonly isBeginning: boolean;
  /** The version to which the cluster can be raised now. */
  raisableTo(): number | Refusal;
  /** For a question: answered after a quorum round, in this turn or a later one. */
  gather(onReady: () => void, onFailed: () => void): void;
  /** For what a lease may hang on: before all questions. */
  gatherForLease(onReady: () => void, onFailed: () => void): void;
  /** False: no lease of that session is kept here. */
  keepalive(session: SessionId, number: number): boolean;
  /** As this leader sees them. */
  members(): MembersView;
  /** Ends once: in this turn when it is refused, or later. */
  changeMembers(change: MembershipChange, isForced: boolean, onEnded: (result: ChangeResult) => void): void;
  transfer(to: string | null, onEnded: (leader: NodeAddress | null) => void): void;
  /** For the next turn. */
  enqueue(connection: ClientConnection, frame: ClientFrame): void;
}
