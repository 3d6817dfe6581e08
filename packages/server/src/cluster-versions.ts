/**
 * The gate for new commands (docs/operations.md, "Rolling upgrade"). A command is proposed only when the cluster has reached its version,
 * and the cluster is raised to a version only while every member is linked and says that it can run it.
 */
import { commandVersions } from "@holdfast/lock";
import type { Command, LockMachine, VersionRange } from "@holdfast/lock";
import type { Configuration, NodeId } from "@holdfast/raft";
import type { Refusal } from "@holdfast/wire";
import type { Logger } from "./ports.js";

export type Incompatible = Extract<Refusal, { readonly code: "incompatible" }>;

export interface ClusterVersionsParts {
  readonly self: NodeId;
  /** What this node can run. */
  readonly range: VersionRange;
  /** So long a new leader of a new cluster waits for links to all members. */
  readonly waitMs: number;
  nowMs(): number;
  configuration(): Configuration;
  /** What the peers can run with which links stand in both directions. */
  met(): ReadonlyMap<NodeId, { readonly versions: VersionRange }>;
  machine(): Pick<LockMachine, "clusterVersion" | "isUntouched">;
  /** In this term or not at all. */
  propose(command: Command, onRefused: () => void): void;
  readonly logger: Logger;
}

export class ClusterVersions {
  private readonly parts: ClusterVersionsParts;
  /** The last that was noted. */
  private known: number;
  private isProposed = false;
  /** When this leadership was first asked whether a new cluster is about to begin. */
  private askedMs: number | null = null;

  constructor(parts: ClusterVersionsParts) {
    this.parts = parts;
    this.known = this.current;
  }

  private get current(): number {
    return this.parts.machine().clusterVersion;
  }

  /**
   * At a leader that serves. A new cluster begins at the highest version that its nodes run: it has nothing yet that the release before
   * would have to read.
   */
  maybeBegin(): void {
    const { parts } = this;
    if (!parts.machine().isUntouched || this.isProposed || parts.range.max <= this.current) return;
    const version = this.target();
    if (typeof version !== "number") return;
    this.isProposed = true;
    parts.propose({ kind: "setClusterVersion", version }, () => {
      this.isProposed = false;
    });
  }

  /**
   * At a leader: a new cluster is about to be raised, so its first session waits for that. Not for long when a member can't be reached, and
   * not at all when one runs another release.
   */
  get isBeginning(): boolean {
    const { parts } = this;
    const { max } = parts.range;
    if (!parts.machine().isUntouched || this.isProposed || max <= this.current) return false;
    if (this.ranges().some(({ versions }) => versions !== null && versions.max !== max)) return false;
    const nowMs = parts.nowMs();
    this.askedMs ??= nowMs;
    return nowMs - this.askedMs < parts.waitMs;
  }

  onLeadershipLost(): void {
    this.isProposed = false;
    this.askedMs = null;
  }

  noteApplied(): void {
    const version = this.current;
    if (version === this.known) return;
    this.known = version;
    this.parts.logger.info({ version }, `the cluster is at version ${version}`);
  }

  /** Null when a command of this kind may be proposed. `what`: in the refusal's words. */
  gate(kind: Command["kind"], needed: number = commandVersions[kind], what: string = kind): Incompatible | null {
    const version = this.current;
    if (needed <= version) return null;
    const start = `${what} needs cluster version ${needed}, and the cluster is at ${version}`;
    return incompatible(`${start}: ${this.obstacles(needed) ?? "run holdfast upgrade --finalize"}`);
  }

  /** To which the cluster can be raised now: the highest that any member runs. Refused while one is behind: half an upgrade is none. */
  target(): number | Incompatible {
    const version = this.current;
    const highest = this.ranges().reduce((max, { versions }) => Math.max(max, versions?.max ?? 0), version);
    const obstacles = this.obstacles(highest);
    if (obstacles === null) return highest;
    const aim = highest > version ? `can't be raised to ${highest}` : "can't be raised";
    return incompatible(`the cluster is at version ${version} and ${aim}: ${obstacles}`);
  }

  private obstacles(version: number): string | null {
    const found = this.ranges().flatMap(({ id, versions }) => {
      if (versions === null) return [`${id} can't be reached`];
      return versions.max < version ? [`${id} runs version ${versions.max} at most`] : [];
    });
    return found.length === 0 ? null : found.join(", ");
  }

  private ranges(): { readonly id: NodeId; readonly versions: VersionRange | null }[] {
    const { self, range } = this.parts;
    const { voters, outgoing, learners } = this.parts.configuration();
    const ids = [...new Set([...voters, ...outgoing, ...learners].map((member) => member.id))].sort();
    const met = this.parts.met();
    return ids.map((id) => ({ id, versions: id === self ? range : (met.get(id)?.versions ?? null) }));
  }
}

function incompatible(problem: string): Incompatible {
  return { code: "incompatible", problem };
}
