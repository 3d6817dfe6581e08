/**
 * One node of the cluster over all its lives: the real NodeProcess in a virtual world. A life ends when its process is killed (what it still
 * does then reaches nobody) or when the node ends by itself; the next one starts with what the directory holds.
 */
import type { Config, NodeHost } from "@holdfast/server";
import { NodeProcess } from "@holdfast/server/parts";
import type { Ending, NodeWorld } from "@holdfast/server/parts";
import type { Counts } from "../clients/index.js";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { VirtualDisk } from "../disk/virtual-disk.js";
import type { Rot } from "../disk/rot.js";
import { createPeerTransport } from "../network/index.js";
import type { Network } from "../network/index.js";
import { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Recorder } from "../recorder.js";
import type { Scheduler } from "../scheduler.js";
import { AdminCall } from "./admin-call.js";
import type { AdminRequest, OnAnswer } from "./admin-call.js";
import { NodeDirectory } from "./directory.js";
import type { CrashPoint } from "./directory.js";
import { probed } from "./host-access.js";
import { HostTap } from "./host-tap.js";
import { SimulatedListener } from "./simulated-listener.js";
import { lateEndsFor, proposeTo } from "./late-ends.js";
import { silentMetrics } from "./silent-metrics.js";
import { tellingLogger } from "./telling-logger.js";

/** A supervisor starts a node again that has ended by itself, after this time. */
const restartMs = 300;
/** From here on a turn leaves what it can to the next one (turn-loop.ts). */
const longTurnMs = 10;

/** What was done to a node for which it may rightly end by itself: its disk refused, its directory was damaged, lied or was put back. */
export type Harm = "disk" | "rot" | "lie" | "copy" | "wipe";

/** Of these there is no way back under the same id. */
const spoiling: readonly Harm[] = ["rot", "lie", "copy", "wipe"];

export interface NodeParts {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly recorder: Recorder;
  readonly counts: Counts;
  readonly config: Config;
  readonly firstIndex: number;
  readonly recordsPerPiece: number;
  /** As in ProcessOptions. */
  readonly busy: number;
  /** Streams of this node's own. */
  readonly random: Random;
  /** The cluster that it waits to be added to; null for one that is there from the start. */
  joins(): string | null;
  /** The cluster watches each event. */
  readonly events: NodeEvents;
}

export interface NodeEvents {
  onHost(node: SimulatedNode, host: NodeHost): void;
  afterEvent(node: SimulatedNode): void;
  /** What clients say to it, and what it says to them. */
  onRead(node: SimulatedNode, connection: number, message: ClientMessage): void;
  onTold(node: SimulatedNode, connection: number, message: ServerMessage): void;
  /** Its life is over. `ending`: null when it was killed. */
  onDown(node: SimulatedNode, ending: Ending | null): void;
  onUp(node: SimulatedNode): void;
}

interface Life {
  readonly process: SimulatedProcess;
  readonly node: NodeProcess;
  host: NodeHost | null;
  tap: HostTap | null;
  /** It was asked to. */
  isStopping: boolean;
}

export class SimulatedNode {
  readonly id: string;
  readonly directory: NodeDirectory;
  /** The others or its own disk refuse it for ever. */
  refusedFor: string | null = null;
  /** It is started again even when it was asked to stop: a stop may have been asked for long ago, while it could not hear. */
  isKeptUp = false;
  readonly harms: Set<Harm> = new Set();
  /** That took more than a tenth of an election timeout. */
  slowWrites = 0;
  readonly #parts: NodeParts;
  #life: Life | null = null;
  #rate = 1;
  #strayedMs = 0;
  #machineBoot = 1;
  #isInUse = false;
  #armed: { readonly point: CrashPoint; left: number; readonly crash: () => void } | null = null;

  constructor(id: string, parts: NodeParts) {
    this.id = id;
    this.#parts = parts;
    this.directory = new NodeDirectory(new VirtualDisk(parts.random));
  }

  get disk(): VirtualDisk {
    return this.directory.disk;
  }

  /** The others, or its own next start, have every reason to refuse it. */
  get isSpoilt(): boolean {
    return this.refusedFor !== null || spoiling.some((harm) => this.harms.has(harm));
  }

  /** It has been started at least once. */
  get isInUse(): boolean {
    return this.#isInUse;
  }

  /** Whether what was done to it explains this end. */
  explains({ exit }: Ending): boolean {
    if (exit === "ok") return true;
    if (exit === "oldCopy") return this.harms.has("lie") || this.harms.has("copy");
    if (exit === "wrongInstance") return this.harms.has("wipe");
    return exit === "storage" && this.harms.size > 0;
  }

  get isRunning(): boolean {
    return this.#life !== null;
  }

  get process(): SimulatedProcess | null {
    return this.#life?.process ?? null;
  }

  get host(): NodeHost | null {
    return this.#life?.host ?? null;
  }

  /** Members of the configuration that it has in force; none while it has no host. */
  get memberIds(): readonly string[] {
    if (this.host === null) return [];
    const { voters, outgoing, learners } = probed(this.host).raft.configuration;
    return [...voters, ...outgoing, ...learners].map(({ id }) => id);
  }

  /** Its clock, over all its lives. */
  get strayedMs(): number {
    return this.#strayedMs + (this.#life?.process.strayedMs ?? 0);
  }

  get rate(): number {
    return this.#rate;
  }

  /** Does nothing when it runs, or when its directory is refused for ever. */
  start(): void {
    if (this.#life !== null || this.refusedFor !== null) return;
    const { scheduler, network, random, config, firstIndex, recordsPerPiece, busy, events } = this.#parts;
    const joins = this.#parts.joins();
    this.#isInUse = true;
    const process = new SimulatedProcess(
      { id: this.id, rate: this.#rate, busy },
      { scheduler, random, onEvent: () => this.#afterEvent(process) },
    );
    network.place(this.id).turnOn();
    const logger = tellingLogger(this.id, (text, facts) => this.#onLog(process, text, facts));
    const node: NodeProcess = new NodeProcess(
      {
        config,
        nodeId: this.id,
        dataDirectory: this.id,
        version: "0",
        recordsPerPiece,
        ...(joins === null ? {} : { joins }),
        ...(joins === null && firstIndex > 1 && !this.directory.isFormed ? { bootstrap: { firstIndex } } : {}),
      },
      logger,
      this.#worldFor(process),
    );
    const life: Life = { process, node, host: null, tap: null, isStopping: false };
    this.#life = life;
    events.onUp(this);
    void node.run().then((ending) => this.#onEnded(life, ending));
  }

  /** SIGKILL, or the loss of its machine's power: then nobody hears of it, and what was not synced is gone. */
  crash(kind: "process" | "machine"): void {
    const life = this.#life;
    if (life === null) return;
    this.#end(life, kind);
    this.#parts.events.onDown(this, null);
  }

  /** SIGTERM. */
  stopInOrder(): void {
    const life = this.#life;
    if (life === null) return;
    life.isStopping = true;
    // A signal waits until the process runs.
    life.process.deliver(() => life.node.end({ exit: "ok", sentence: null }));
  }

  get isStopping(): boolean {
    return this.#life?.isStopping === true;
  }

  /** As an operator's command would. */
  transfer(to: string | null): void {
    const life = this.#life;
    if (life === null || life.host === null) return;
    const { host } = life;
    life.process.deliver(() =>
      probed(host).beginTransfer(to, 1_000, (leader) => {
        if (leader !== null && leader.id !== this.id) this.#parts.counts.add("leadership handed on");
      }),
    );
  }

  /** An administrator's request, as a client's frame; `isStillMeant` is asked when the process comes to it. */
  changeMembers(request: AdminRequest, isStillMeant: () => boolean, onAnswer: OnAnswer): AdminCall {
    const call = new AdminCall(request, onAnswer);
    const life = this.#life;
    if (life === null || life.host === null) {
      call.abandon();
      return call;
    }
    const { host } = life;
    life.process.deliver(() => {
      if (isStillMeant()) call.begin(host);
      else call.abandon();
    });
    return call;
  }

  /** Its directory is emptied, while it doesn't run. */
  wipe(): void {
    this.harms.add("wipe");
    this.directory.wipe();
  }

  /** Once more, though it was refused for ever. */
  startAgain(): void {
    this.refusedFor = null;
    this.start();
  }

  /** `onProposed` runs for each that it proposes. */
  proposeLateEnds(random: Random, onProposed: () => void): void {
    const life = this.#life;
    if (life === null || life.host === null) return;
    const host = probed(life.host);
    life.process.deliver(() => {
      for (const command of lateEndsFor(host.applier.machine, random)) {
        proposeTo(host, command);
        onProposed();
      }
    });
  }

  setRate(rate: number): void {
    this.#rate = rate;
    this.#life?.process.setRate(rate);
  }

  /** Its directory goes bad, in a way that the next start finds. */
  rot(random: Random): void {
    if (!this.directory.isFormed) return;
    this.harms.add("rot");
    this.disk.rot(random.pick<Rot>(["flip", "hole", "file", "chunk", "mark", "markFile", "identity"]));
  }

  /** It dies when it comes to this point for the `count`th time. */
  armCrash(point: CrashPoint, count: number, crash: () => void): void {
    this.#armed = { point, left: count, crash };
  }

  disarm(): void {
    this.#armed = null;
  }

  #worldFor(process: SimulatedProcess): NodeWorld {
    const { random, recorder, network, events } = this.#parts;
    const hooks = {
      hit: (point: CrashPoint) => this.#hit(process, point),
      note: (mark: string) => this.#parts.counts.add(mark),
    };
    return {
      clock: process,
      random,
      transport: createPeerTransport(network, this.id, process, () => hooks.hit("before a frame is sent")),
      metrics: silentMetrics(
        (effects) => {
          const life = this.#lifeOf(process);
          if (life === null) return;
          life.tap?.noteEffects(effects);
          hooks.hit("after an entry is applied");
        },
        (reason) => hooks.note(`turned away: ${reason}`),
        (seconds) => {
          if (seconds * 1_000 > this.#parts.config.timing.electionTimeoutMs / 10) this.slowWrites += 1;
        },
      ),
      threadPoolSize: 16,
      drawName: () => random.key(),
      drawSeed: () => Buffer.from(`${random.key()}${random.key()}`, "hex"),
      readMachineBootId: () => `machine ${this.#machineBoot}`,
      openDirectory: (options) => this.directory.open(options, process, hooks),
      createListener: (options, parts) =>
        new SimulatedListener(options, parts, {
          process,
          network,
          recorder,
          note: hooks.note,
          host: () => this.#lifeOf(process)?.host ?? null,
          onRead: (connection, message) => {
            if (this.#lifeOf(process) !== null) events.onRead(this, connection, message);
          },
          onTold: (connection, message) => {
            if (this.#lifeOf(process) !== null) events.onTold(this, connection, message);
          },
        }),
      onHost: (host) => this.#onHost(process, host),
    };
  }

  /** Null for the late words of a process that is dead. */
  #lifeOf(process: SimulatedProcess): Life | null {
    return this.#life?.process === process ? this.#life : null;
  }

  #onHost(process: SimulatedProcess, host: NodeHost): void {
    const life = this.#lifeOf(process);
    if (life === null) return;
    life.host = host;
    life.tap = new HostTap(this.id, host, this.#parts.recorder);
    this.#parts.events.onHost(this, host);
  }

  #afterEvent(process: SimulatedProcess): void {
    const life = this.#lifeOf(process);
    if (life === null || life.host === null) return;
    if (process.aheadMs > longTurnMs) this.#parts.counts.add("long turn");
    life.tap?.afterEvent();
    this.#parts.events.afterEvent(this);
  }

  #onLog(process: SimulatedProcess, text: string, facts: object): void {
    const life = this.#lifeOf(process);
    if (life === null) return;
    this.#parts.recorder.tell(this.id, text, facts);
    life.tap?.noteLog(text, facts);
    if (text === "snapshot installed" && life.host !== null && probed(life.host).raft.role === "learner")
      this.#parts.counts.add("learner got a snapshot");
  }

  #hit(process: SimulatedProcess, point: CrashPoint): void {
    const armed = this.#armed;
    if (armed === null || armed.point !== point || this.#lifeOf(process) === null) return;
    armed.left -= 1;
    if (armed.left > 0) return;
    this.#armed = null;
    this.#parts.recorder.tell(this.id, `dies ${point}`);
    armed.crash();
  }

  #onEnded(life: Life, ending: Ending): void {
    if (this.#life !== life) return;
    this.#end(life, "process");
    if (isFinal(ending, this.directory)) this.refusedFor = ending.sentence ?? ending.exit;
    this.#parts.events.onDown(this, ending);
    if (ending.exit !== "ok" || this.isKeptUp)
      this.#parts.scheduler.after(restartMs, `restart ${this.id}`, () => this.start());
  }

  #end(life: Life, kind: "process" | "machine"): void {
    life.tap?.onEnd();
    this.#life = null;
    this.#strayedMs += life.process.strayedMs;
    life.process.kill();
    this.#parts.network.place(this.id).onProcessKilled(life.process, kind);
    if (!this.directory.isFormed) return;
    if (kind === "process") this.disk.kill();
    else {
      this.#machineBoot += 1;
      this.disk.powerLoss();
    }
  }
}

/** A supervisor would start it again and again in vain. */
function isFinal(ending: Ending, directory: NodeDirectory): boolean {
  if (directory.isQuarantined) return true;
  return [
    "oldCopy",
    "wrongInstance",
    "wrongCluster",
    "unknownNode",
    "removed",
    "otherNode",
    "newerFormat",
    "wrongVersion",
  ].includes(ending.exit);
}
