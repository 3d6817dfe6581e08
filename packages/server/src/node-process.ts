/** The parts of a running node, from the data directory to the sockets. */
import { firstVersion, versionRange } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import type { DataDirectory } from "@holdfast/storage";
import { entryCodec, limits as wireLimits } from "@holdfast/wire";
import { isLoopback, parseAddress } from "./address.js";
import { warnOfSettings } from "./config-warnings.js";
import { nodeFor } from "./config.js";
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
import { configurationIn, durableFactsOf, formedFactsOf, Formation } from "./formation.js";
import type { FormedNode } from "./formation.js";
import type { HttpOptions } from "./http.js";
import { exclusionIn } from "./joining.js";
import type { ClusterFacts } from "./joining.js";
import { NodeAnswers, newNodeState } from "./node-answers.js";
import type { NodeState } from "./node-answers.js";
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
  private readonly state: NodeState = newNodeState();
  private readonly answers: NodeAnswers;
  private isHostStopped = false;
  private isEndingForEver = false;
  private readonly refusals: FatalRefusals;

  constructor(options: NodeProcessOptions, logger: Logger, world: NodeWorld) {
    this.options = options;
    this.logger = logger;
    this.world = world;
    this.answers = new NodeAnswers(options, world, this.state);
    this.ending = new Promise((resolve) => {
      this.resolveEnding = resolve;
    });
    this.refusals = new FatalRefusals({
      clock: world.clock,
      clusterId: () => this.state.clusterId ?? options.joins ?? null,
      met: () => this.state.links?.met() ?? new Map(),
      onFatal: (fatal) => this.onFatal(fatal),
    });
  }

  /** Asks the node to end; the first reason counts. */
  end(ending: Ending): void {
    this.state.isEnding = true;
    this.resolveEnding(ending);
  }

  get isWaiting(): boolean {
    return this.state.host === null && !this.state.isEnding;
  }

  /** Of the cluster that it waits to join: what is committed there may keep it out for ever. */
  hearOfCluster(facts: ClusterFacts): void {
    const instance = this.state.directory?.identity.instance;
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
    this.state.directory = directory;
    const { clusterId } = directory.identity;
    if (this.options.bootstrap !== undefined && clusterId !== null) {
      return this.end({
        exit: "usage",
        sentence: "--bootstrap is for a new data directory, and this one is formed already",
      });
    }
    const own = nodeFor(config, nodeId);
    warnOfSettings(own, config, world.threadPoolSize, logger);
    this.state.listener = this.createListener(own);
    await this.state.listener.start();
    if (this.state.isEnding) return;
    const links = this.createLinks(own, directory);
    this.state.links = links;
    world.metrics.attachTransport({ figures: () => this.answers.transportFigures() });
    const { restored, store } = directory;
    if (clusterId !== null && restored !== null && store !== null) {
      await this.startHost({ clusterId, store, restored }, links, directory);
      if (!this.state.isEnding) await links.start();
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
    this.state.formation = formation;
    formation.start();
    const formed = await Promise.race([formation.formed, this.ending.then(() => null)]);
    formation.stop();
    this.state.formation = null;
    if (formed !== null && !this.state.isEnding) await this.startHost(formed, links, directory);
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
    if (this.state.isEnding) return;
    const drawSeed = (): Uint8Array => world.drawSeed();
    const parts = { clock, random, drawSeed, codec: entryCodec, store, restored, machine, links, logger, metrics };
    const host = new NodeHost(nodeHostOptionsFor(config, nodeId, clusterId, version, recordsPerPiece), parts);
    this.state.host = host;
    this.state.clusterId = clusterId;
    metrics.attach(host.report);
    world.onHost?.(host);
    void host.stopped.then((reason) => this.onHostStopped(reason));
    // The host is there before the first message can be.
    links.becomeFormed(formedFactsOf(clusterId, restored, configurationIn(restored)), durableFactsOf(restored));
    host.start();
    this.state.listener?.open(host.gateway);
    const { term, last } = durableFactsOf(restored);
    logger.info({ clusterId, term, index: last.index }, "node started");
  }

  /** In order: leadership goes to another node, what was promised is written, clients and peers are told. Else nobody is told anything. */
  private async stop(isInOrder: boolean, started: Promise<void>): Promise<void> {
    this.refusals.stop();
    if (!isInOrder) await Promise.all([this.state.links?.abandon(), this.state.listener?.abandon()]);
    await started;
    if (this.state.host !== null && !this.isHostStopped) await this.state.host.transferAndStop();
    if (isInOrder) {
      await this.state.listener?.close();
      await this.state.links?.close();
    } else await Promise.all([this.state.links?.abandon(), this.state.listener?.abandon()]);
    await this.state.directory?.close();
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
    this.state.links?.abandon().catch(() => undefined);
    this.endForEver(oldCopyReason, ending, refusal.problem);
  }

  /** The directory itself must know: what the peers know may die with their processes, and they may not be there at the next start. */
  private endForEver(reason: string, ending: Ending, problem: string | null = ending.sentence): void {
    if (this.state.directory === null) return this.end(ending);
    if (this.isEndingForEver) return;
    this.isEndingForEver = true;
    this.state.directory.quarantine(`${reason}${problem}`).then(
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
    const { logger, world, state } = this;
    const { clock, random, transport } = world;
    return createPeerLinks(
      options,
      {
        clock,
        random,
        logger,
        transport,
        drawName: () => world.drawName(),
        clusterVersion: () => state.host?.clusterVersion ?? firstVersion,
      },
      {
        onMessages: (from, messages) => state.host?.onMessages(from, messages),
        onPeerGone: (peer) => state.host?.onPeerGone(peer),
        onPeerReset: (peer) => state.host?.onPeerReset(peer),
        onRefused: (refusal, isPeerFormed) => this.refusals.onRefused(refusal, isPeerFormed),
        onReplaced: (other) => this.end(replacedInCluster(nodeId, instance, other)),
        onMet: () => state.formation?.onMet(),
        onFormed: (from, frame) => state.formation?.onFormed(from, frame),
      },
    );
  }

  private createListener(own: ConfiguredNode): NodeListener {
    const { config } = this.options;
    const { limits } = config;
    const http: HttpOptions = {
      origins: config.origins,
      hosts: [parseAddress(own.client)?.host ?? "localhost"],
      isLoopbackOnly: isLoopback(own.listen.client.host),
      requestsMax: limits.httpRequestsMax,
      bufferedBytesMax: limits.clientBufferedBytesMax,
    };
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
      this.answers,
    );
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}
