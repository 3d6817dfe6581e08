/**
 * What a node answers whoever asks how it is, from its first moment to its last: its parts come one after the other, and what is not there
 * yet has no answer. Reads only.
 */
import type { NodeId } from "@holdfast/raft";
import type { DataDirectory } from "@holdfast/storage";
import type { NodeStatus } from "@holdfast/wire";
import type { BackupSource } from "./backup-stream.js";
import { BackupRefusedError } from "./backup-taking.js";
import { checkupFrom } from "./checkup.js";
import type { Checkup, ClockReading } from "./checkup.js";
import { nodeFor } from "./config.js";
import type { Config } from "./config.js";
import { waitsToBeAdded } from "./formation.js";
import type { Formation } from "./formation.js";
import { clusterFactsOf } from "./joining.js";
import type { ClusterFacts, NodeIdentity } from "./joining.js";
import type { Metrics, RejectionReason, TransportSource } from "./metrics.js";
import type { NodeHost } from "./node-host.js";
import type { NodeListener, NodeListenerParts } from "./node-world.js";
import type { Health, KeyAnswer } from "./node-routes.js";
import type { ServerPeerLinks } from "./peer-links.js";
import type { Clock } from "./ports.js";

export interface NodeAnswersOptions {
  readonly config: Config;
  readonly nodeId: NodeId;
  readonly dataDirectory: string;
  /** The id of the running cluster that this node waits to be added to, unless it belongs to it already. */
  readonly joins?: string;
  readonly version: string;
}

export interface NodeAnswersParts {
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** What there is of a node by now. */
export interface NodeState {
  directory: DataDirectory | null;
  listener: NodeListener | null;
  links: ServerPeerLinks | null;
  /** While the node has no configuration yet. */
  formation: Formation | null;
  host: NodeHost | null;
  clusterId: string | null;
  isEnding: boolean;
}

export function newNodeState(): NodeState {
  return {
    directory: null,
    listener: null,
    links: null,
    formation: null,
    host: null,
    clusterId: null,
    isEnding: false,
  };
}

export class NodeAnswers implements NodeListenerParts {
  private readonly options: NodeAnswersOptions;
  private readonly parts: NodeAnswersParts;
  private readonly state: Readonly<NodeState>;
  private readonly startedAtMs: number;

  constructor(options: NodeAnswersOptions, parts: NodeAnswersParts, state: Readonly<NodeState>) {
    this.options = options;
    this.parts = parts;
    this.state = state;
    this.startedAtMs = parts.clock.monotonicMs();
  }

  status(): NodeStatus | null {
    return this.state.host?.status() ?? null;
  }

  clock(): ClockReading {
    return { boot: this.state.directory?.identity.boot ?? null, monotonicMs: this.parts.clock.monotonicMs() };
  }

  metrics(): ReturnType<Metrics["render"]> {
    return this.parts.metrics.render();
  }

  onRejected(reason: RejectionReason): void {
    this.parts.metrics.noteRejected(reason);
  }

  identity(): NodeIdentity | null {
    if (this.state.directory === null) return null;
    const { id, peer, client } = nodeFor(this.options.config, this.options.nodeId);
    const { instance, clusterId } = this.state.directory.identity;
    return { id, instance, peer, client, clusterId: clusterId ?? this.options.joins ?? null };
  }

  cluster(): ClusterFacts | null {
    const { host, clusterId } = this.state;
    if (host === null || clusterId === null) return null;
    return clusterFactsOf(this.options.config, clusterId, host.committedConfiguration);
  }

  keys(): KeyAnswer | null {
    return this.state.host === null ? null : { keys: this.state.host.publicKeys() };
  }

  backup(): Promise<BackupSource> {
    if (this.state.host !== null) return this.state.host.takeBackup();
    return Promise.reject(new BackupRefusedError("not_ready", "the node is not part of a cluster yet"));
  }

  hasSession(session: number): boolean {
    return this.state.host?.hasSession(session) ?? false;
  }

  health(): Health {
    if (this.state.isEnding) return { isLive: true, isReady: false, problem: "the node is stopping" };
    if (this.state.host !== null) return this.state.host.health();
    return {
      isLive: true,
      isReady: false,
      problem: this.state.formation === null ? "the node is starting" : this.waitingProblem(),
    };
  }

  checkup(): Checkup {
    const { config, nodeId, version: release, dataDirectory } = this.options;
    const identity = this.state.directory?.identity ?? null;
    const nowMs = this.parts.clock.monotonicMs();
    return checkupFrom({
      config,
      nodeId,
      release,
      dataDirectory,
      instance: identity?.instance ?? null,
      boot: identity?.boot ?? null,
      uptimeMs: nowMs - this.startedAtMs,
      health: this.health(),
      status: this.state.host?.status() ?? null,
      host: this.state.host?.report.checkup(nowMs) ?? null,
      refusedBeginning: this.state.formation?.refused ?? null,
      linked: new Set(this.state.links?.met().keys()),
      connections: this.state.listener?.figures().connections ?? 0,
    });
  }

  /** For metrics. */
  transportFigures(): ReturnType<TransportSource["figures"]> {
    const peer = this.state.links?.figures() ?? { links: 0, bufferedBytes: 0 };
    return {
      client: this.state.listener?.figures() ?? { connections: 0, bufferedBytes: 0 },
      peer: { connections: peer.links, bufferedBytes: peer.bufferedBytes },
    };
  }

  private waitingProblem(): string {
    const { config, nodeId, joins } = this.options;
    if (joins === undefined) {
      const text = "the cluster is not formed yet";
      const refused = this.state.formation?.refused ?? null;
      return refused === null ? text : `${text}: refused that of ${refused.from}: ${refused.problem}`;
    }
    const { peer, client } = nodeFor(config, nodeId);
    return waitsToBeAdded(nodeId, peer, client);
  }
}
