/** The parts of a running node, from the data directory to the sockets. */
import { isIP } from "node:net";
import { firstVersion, versionRange } from "@holdfast/lock";
import type { NodeId } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { DataDirectory } from "@holdfast/storage";
import { entryCodec, limits as wireLimits } from "@holdfast/wire";
import { formatAddress, isLoopback, parseAddress } from "./address.js";
import type { BackupSource } from "./backup-stream.js";
import { BackupRefusedError } from "./backup-taking.js";
import { checkupFrom } from "./checkup.js";
import type { Checkup } from "./checkup.js";
import type { Config, ConfiguredNode } from "./config.js";
import {
  endingFor,
  oldCopyReason,
  refusedByPeer,
  removedFromCluster,
  removedReason,
  replacedInCluster,
} from "./endings.js";
import type { Ending } from "./endings.js";
import { FatalRefusals } from "./fatal-refusals.js";
import type { FatalRefusal } from "./fatal-refusals.js";
import { configurationIn, durableFactsOf, formedFactsOf, Formation, waitsToBeAdded } from "./formation.js";
import type { FormedNode } from "./formation.js";
import type { Health, HttpOptions } from "./http.js";
import { clusterFactsOf, exclusionIn } from "./joining.js";
import type { ClusterFacts, NodeIdentity } from "./joining.js";
import type { TransportSource } from "./metrics.js";
import { nodeHostOptionsFor } from "./node-options.js";
import { NodeHost } from "./node-host.js";
import type { StopReason } from "./node-host-types.js";
import type { NodeListener, NodeWorld } from "./node-world.js";
import { createPeerLinks } from "./peer-links.js";
import type { ServerPeerLinks } from "./peer-links.js";
import type { Logger } from "./ports.js";
import { loadMachine } from "./stored-machine.js";

export interface NodeProcessOptions {
  readonly config: Config;
  readonly nodeId: string;
  readonly dataDirectory: string;
  readonly bootstrap?: { readonly firstIndex: number };
  /** The id of the running cluster that this node waits to be added to, unless it belongs to it already. */
  readonly joins?: string;
  readonly version: string;
  /** Of a snapshot; small pieces show in small states what large ones hide. */
  readonly recordsPerPiece?: number;
}

/**
 * Parts of a node that are asked to stop get so many seconds: a disk that hangs must not hold the process for ever. Counted one by one, for
 * the time in which the process itself was stopped, or its machine slept, says nothing of the disk.
 */
const stopSecondsMax = 10;

export class NodeProcess {
  private readonly options: NodeProcessOptions;
  private readonly logger: Logger;
  private readonly world: NodeWorld;
  private readonly ending: Promise<Ending>;
  private resolveEnding: (ending: Ending) => void = () => undefined;
  private directory: DataDirectory | null = null;
  private listener: NodeListener | null = null;
  private links: ServerPeerLinks | null = null;
  private formation: Formation | null = null;
  private host: NodeHost | null = null;
  private clusterId: string | null = null;
  private isEnding = false;
  private isHostStopped = false;
  private isEndingForEver = false;
  private readonly refusals: FatalRefusals;
  private readonly startedAtMs: number;

  constructor(options: NodeProcessOptions, logger: Logger, world: NodeWorld) {
    this.options = options;
    this.logger = logger;
    this.world = world;
    this.startedAtMs = world.clock.monotonicMs();
    this.ending = new Promise((resolve) => {
      this.resolveEnding = resolve;
    });
    this.refusals = new FatalRefusals({
      clock: world.clock,
      clusterId: () => this.clusterId ?? options.joins ?? null,
      met: () => this.links?.met() ?? new Map(),
      onFatal: (fatal) => this.onFatal(fatal),
    });
  }

  /** Asks the node to end; the first reason counts. */
  end(ending: Ending): void {
    this.isEnding = true;
    this.resolveEnding(ending);
  }

  get isWaiting(): boolean {
    return this.host === null && !this.isEnding;
  }

  /** Of the cluster that it waits to join: what is committed there may keep it out for ever. */
  hearOfCluster(facts: ClusterFacts): void {
    const instance = this.directory?.identity.instance;
    if (!this.isWaiting || instance === undefined) return;
    const ending = exclusionIn(facts, { id: this.options.nodeId, instance });
    if (ending?.exit === "removed") this.endForEver(removedReason, ending);
    else if (ending !== null) this.end(ending);
  }

  /** Resolves when the node has ended and its directory is closed. */
  async run(): Promise<Ending> {
    const started = this.start().catch((error: unknown) => this.end(endingFor(error)));
    const ending = await this.ending;
    const isInOrder = ending.exit === "ok" || ending.exit === "removed";
    const late: Ending = isInOrder
      ? { exit: "storage", sentence: "the disk did not answer while the node was stopping" }
      : ending;
    const stopped = this.stop(isInOrder, started).then(
      () => ending,
      (error: unknown) => (isInOrder ? endingFor(error) : ending),
    );
    return Promise.race([stopped, this.afterSeconds(stopSecondsMax, stopped).then(() => late)]);
  }

  /** Of a process that runs. Not at all when `stopped` comes first. */
  private afterSeconds(seconds: number, stopped: Promise<unknown>): Promise<void> {
    const { clock } = this.world;
    return new Promise((resolve) => {
      let left = seconds;
      const tick = (): void => {
        left -= 1;
        if (left < 0) resolve();
        else timer = clock.setTimer(1_000, tick);
      };
      let timer = clock.setTimer(0, tick);
      void stopped.then(() => timer.cancel());
    });
  }

  private async start(): Promise<void> {
    const { config, nodeId, dataDirectory } = this.options;
    const { logger, world } = this;
    const directory = await world.openDirectory({
      directory: dataDirectory,
      nodeId,
      machineBootId: world.readMachineBootId(),
      randomInstance: () => world.drawName(),
      logger,
    });
    this.directory = directory;
    const { clusterId } = directory.identity;
    if (this.options.bootstrap !== undefined && clusterId !== null) {
      return this.end({
        exit: "usage",
        sentence: "--bootstrap is for a new data directory, and this one is formed already",
      });
    }
    const own = nodeFor(config, nodeId);
    this.warnOf(own);
    this.listener = this.createListener(own);
    await this.listener.start();
    if (this.isEnding) return;
    const links = this.createLinks(own, directory);
    this.links = links;
    world.metrics.attachTransport({ figures: () => this.transportFigures() });
    const { restored, store } = directory;
    if (clusterId !== null && restored !== null && store !== null) {
      await this.startHost({ clusterId, store, restored }, links, directory);
      if (!this.isEnding) await links.start();
    } else {
      await links.start();
      await this.startUnformed(links, directory);
    }
  }

  private async startUnformed(links: ServerPeerLinks, directory: DataDirectory): Promise<void> {
    const { config, nodeId, bootstrap, joins } = this.options;
    const { instance } = directory.identity;
    const { logger, world } = this;
    const formation = new Formation(
      {
        self: { id: nodeId, instance },
        nodes: config.nodes,
        firstIndex: bootstrap?.firstIndex ?? 1,
        ...(joins === undefined ? {} : { joins }),
      },
      { directory, links, clock: world.clock, logger, drawClusterId: () => world.drawName() },
    );
    this.formation = formation;
    formation.start();
    const formed = await Promise.race([formation.formed, this.ending.then(() => null)]);
    formation.stop();
    this.formation = null;
    if (formed !== null && !this.isEnding) await this.startHost(formed, links, directory);
  }

  private async startHost(formed: FormedNode, links: ServerPeerLinks, directory: DataDirectory): Promise<void> {
    const { config, nodeId, version, recordsPerPiece } = this.options;
    const { clusterId, store, restored } = formed;
    const { logger, world } = this;
    const { clock, random, metrics } = world;
    const machine = await loadMachine(store).catch(async (error: unknown) => {
      if (error instanceof StorageError && error.code === "damaged") await directory.quarantine(error.reason);
      throw error;
    });
    if (this.isEnding) return;
    const parts = { clock, random, codec: entryCodec, store, restored, machine, links, logger, metrics };
    const host = new NodeHost(nodeHostOptionsFor(config, nodeId, clusterId, version, recordsPerPiece), parts);
    this.host = host;
    this.clusterId = clusterId;
    metrics.attach(host.report);
    world.onHost?.(host);
    void host.stopped.then((reason) => this.onHostStopped(reason));
    // The host is there before the first message can be.
    links.becomeFormed(formedFactsOf(clusterId, restored, configurationIn(restored)), durableFactsOf(restored));
    host.start();
    this.listener?.open(host.gateway);
    const { term, last } = durableFactsOf(restored);
    logger.info({ clusterId, term, index: last.index }, "node started");
  }

  /** In order: leadership goes to another node, what was promised is written, clients and peers are told. Else nobody is told anything. */
  private async stop(isInOrder: boolean, started: Promise<void>): Promise<void> {
    this.refusals.stop();
    if (!isInOrder) await Promise.all([this.links?.abandon(), this.listener?.abandon()]);
    await started;
    if (this.host !== null && !this.isHostStopped) await this.host.transferAndStop();
    if (isInOrder) {
      await this.listener?.close();
      await this.links?.close();
    } else await Promise.all([this.links?.abandon(), this.listener?.abandon()]);
    await this.directory?.close();
  }

  private onHostStopped(reason: StopReason): void {
    this.isHostStopped = true;
    switch (reason.kind) {
      case "asked":
        return;
      case "removed":
        return this.endForEver(removedReason, removedFromCluster(this.options.nodeId));
      case "storage":
        return this.end(
          endingFor(
            reason.error instanceof StorageError
              ? reason.error
              : new StorageError("io", String(reason.error), reason.error),
          ),
        );
      case "internal":
        return this.end(endingFor(reason.error));
      default:
        assertNever(reason);
    }
  }

  /** From here on this node takes part in nothing. */
  private onFatal({ exit, refusal }: FatalRefusal): void {
    const ending = refusedByPeer(exit, refusal.from, refusal.problem);
    if (exit === "removed") return this.endForEver(removedReason, { ...ending, sentence: refusal.problem });
    if (exit !== "oldCopy") return this.end(ending);
    this.links?.abandon().catch(() => undefined);
    this.endForEver(oldCopyReason, ending, refusal.problem);
  }

  /** The directory itself must know: what the peers know may die with their processes, and they may not be there at the next start. */
  private endForEver(reason: string, ending: Ending, problem: string | null = ending.sentence): void {
    if (this.directory === null) return this.end(ending);
    if (this.isEndingForEver) return;
    this.isEndingForEver = true;
    this.directory.quarantine(`${reason}${problem}`).then(
      () => this.end(ending),
      (error: unknown) => this.end(endingFor(error)),
    );
  }

  private createLinks(own: ConfiguredNode, directory: DataDirectory): ServerPeerLinks {
    const { config, nodeId, joins } = this.options;
    const { instance, boot } = directory.identity;
    const options = {
      self: { id: nodeId, instance, boot, listen: own.listen.peer, versions: versionRange, peer: own.peer },
      cluster: config.cluster,
      ...(joins === undefined ? {} : { joins }),
      peers: config.nodes.filter((node) => node.id !== nodeId).map((node) => ({ id: node.id, address: node.peer })),
      secret: null,
      electionTimeoutMs: config.timing.electionTimeoutMs,
      bufferedBytesMax: config.limits.peerBufferedBytesMax,
    };
    const { logger, world } = this;
    const { clock, random, transport } = world;
    return createPeerLinks(
      options,
      {
        clock,
        random,
        logger,
        transport,
        drawName: () => world.drawName(),
        clusterVersion: () => this.host?.clusterVersion ?? firstVersion,
      },
      {
        onMessages: (from, messages) => this.host?.onMessages(from, messages),
        onPeerGone: (peer) => this.host?.onPeerGone(peer),
        onPeerReset: (peer) => this.host?.onPeerReset(peer),
        onRefused: (refusal, isPeerFormed) => this.refusals.onRefused(refusal, isPeerFormed),
        onReplaced: (other) => this.end(replacedInCluster(nodeId, instance, other)),
        onMet: () => this.formation?.onMet(),
        onFormed: (from, frame) => this.formation?.onFormed(from, frame),
      },
    );
  }

  private createListener(own: ConfiguredNode): NodeListener {
    const { config } = this.options;
    const { metrics } = this.world;
    const http: HttpOptions = {
      origins: config.origins,
      hosts: [parseAddress(own.client)?.host ?? "localhost"],
      isLoopbackOnly: isLoopback(own.listen.client.host),
    };
    const { limits } = config;
    return this.world.createListener(
      {
        listen: own.listen.client,
        http,
        connectionsMax: limits.clientConnectionsMax,
        pendingUpgradesMax: wireLimits.pendingUpgradesMax,
        bufferedBytesSlow: limits.clientBufferedBytesSlow,
        bufferedBytesMax: limits.clientBufferedBytesMax,
        headMs: 5_000,
        helloMs: 5_000,
        pingMs: 5_000,
      },
      {
        health: () => this.health(),
        status: () => this.host?.status() ?? null,
        identity: () => this.identity(),
        cluster: () => this.clusterFacts(),
        clock: () => ({
          boot: this.directory?.identity.boot ?? null,
          monotonicMs: this.world.clock.monotonicMs(),
        }),
        checkup: () => this.checkup(),
        metrics: () => metrics.render(),
        backup: () => this.takeBackup(),
        onRejected: (reason) => metrics.noteRejected(reason),
      },
    );
  }

  private identity(): NodeIdentity | null {
    if (this.directory === null) return null;
    const { id, peer, client } = nodeFor(this.options.config, this.options.nodeId);
    const { instance, clusterId } = this.directory.identity;
    return { id, instance, peer, client, clusterId: clusterId ?? this.options.joins ?? null };
  }

  private clusterFacts(): ClusterFacts | null {
    const { host, clusterId } = this;
    if (host === null || clusterId === null) return null;
    return clusterFactsOf(this.options.config, clusterId, host.committedConfiguration);
  }

  private takeBackup(): Promise<BackupSource> {
    if (this.host !== null) return this.host.takeBackup();
    return Promise.reject(new BackupRefusedError("not_ready", "the node is not part of a cluster yet"));
  }

  private health(): Health {
    if (this.isEnding) return { isLive: true, isReady: false, problem: "the node is stopping" };
    if (this.host !== null) return this.host.health();
    return {
      isLive: true,
      isReady: false,
      problem: this.formation === null ? "the node is starting" : this.waitingProblem(),
    };
  }

  private waitingProblem(): string {
    const { config, nodeId, joins } = this.options;
    if (joins === undefined) return "the cluster is not formed yet";
    const { peer, client } = nodeFor(config, nodeId);
    return waitsToBeAdded(nodeId, peer, client);
  }

  private checkup(): Checkup {
    const { config, nodeId, version: release, dataDirectory } = this.options;
    const identity = this.directory?.identity ?? null;
    const nowMs = this.world.clock.monotonicMs();
    return checkupFrom({
      config,
      nodeId,
      release,
      dataDirectory,
      instance: identity?.instance ?? null,
      boot: identity?.boot ?? null,
      uptimeMs: nowMs - this.startedAtMs,
      health: this.health(),
      status: this.host?.status() ?? null,
      host: this.host?.report.checkup(nowMs) ?? null,
      linked: new Set(this.links?.met().keys()),
      connections: this.listener?.figures().connections ?? 0,
    });
  }

  private transportFigures(): ReturnType<TransportSource["figures"]> {
    const peer = this.links?.figures() ?? { links: 0, bufferedBytes: 0 };
    return {
      client: this.listener?.figures() ?? { connections: 0, bufferedBytes: 0 },
      peer: { connections: peer.links, bufferedBytes: peer.bufferedBytes },
    };
  }

  private warnOf(own: ConfiguredNode): void {
    for (const address of [own.listen.peer, own.listen.client]) {
      if (isLoopback(address.host)) continue;
      const where = formatAddress(address);
      this.logger.warn(
        { address: where },
        `${where} can be reached from other machines, without encryption or passwords: let a firewall guard it`,
      );
    }
    const hasNames = this.options.config.nodes.some(({ peer }) => isHostName(parseAddress(peer)?.host ?? ""));
    // Name look-ups and disk syncs share libuv's pool: four look-ups that hang would stop the disk.
    if (hasNames && this.world.threadPoolSize < 16) {
      this.logger.warn(
        {},
        "peers have host names: set UV_THREADPOOL_SIZE=16, so that a slow name server can't delay the disk",
      );
    }
  }
}

function isHostName(host: string): boolean {
  return isIP(host) === 0 && host !== "localhost";
}

function nodeFor(config: Config, id: NodeId): ConfiguredNode {
  const node = config.nodes.find((each) => each.id === id);
  if (node === undefined) throw new Error(`the configuration has no node ${id}`);
  return node;
}

function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}
