/**
 * One life of one client process: the real client library over a simulated clock and network, and the application's tasks that use it. A
 * process that starts anew is another client, with another id.
 */
import { connectWith } from "@holdfast/client";
import type { Holdfast, Transport } from "@holdfast/client";
import type { SequencerBook } from "../invariants/index.js";
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Scheduler } from "../scheduler.js";
import { Application } from "./application.js";
import { CallBook } from "./call-book.js";
import type { OpenCall } from "./call-book.js";
import { ClientTap } from "./client-tap.js";
import type { Counts } from "./counts.js";
import type { Resource } from "./resource.js";
import { codeOf } from "./results.js";
import { SequencerTask } from "./sequencer-task.js";
import { SessionLog } from "./session-log.js";
import type { CallNumbers, HistorySink, UntimedEvent } from "./sink.js";
import { Watcher } from "./watcher.js";
import type { JudgeWatch } from "./watcher.js";
import { Worker } from "./worker.js";
import type { Workload } from "./workload.js";

/** What a runner asks of a client, whatever it does. */
export interface RunningClient {
  readonly id: string;
  start(): void;
  /** No new work: what is held is given back, and all calls have to end. */
  beginDrain(): void;
  openCalls(): readonly OpenCall[];
  /** Drained, with nothing left to do. */
  readonly isIdle: boolean;
  /** It has a lock by the library, and has not given it back. */
  readonly isHolding: boolean;
  /** The process dies where it is: nothing more comes from it. */
  kill(): void;
  /** For people. */
  describe(): string;
}

export interface SimulatedClientOptions {
  /** Of its process too. */
  readonly id: string;
  readonly endpoints: readonly string[];
  readonly connectTimeoutMs: number;
  readonly workers: number;
  readonly workload: Workload;
}

export interface SimulatedClientParts {
  readonly process: SimulatedProcess;
  readonly scheduler: Scheduler;
  readonly transport: Transport;
  /** A stream of its own for the library and for each worker. */
  readonly streamFor: (name: string) => Random;
  readonly sink: HistorySink;
  readonly numbers: CallNumbers;
  readonly resource: Resource;
  readonly counts: Counts;
  readonly judgeWatch: JudgeWatch;
  readonly sequencers: SequencerBook;
  /** The library, or this application, has done what it never may. */
  readonly onDefect: (error: unknown) => void;
}

const reconnectMs = 200;

export class SimulatedClient implements RunningClient {
  readonly id: string;
  readonly #options: SimulatedClientOptions;
  readonly #parts: SimulatedClientParts;
  readonly #calls: CallBook;
  readonly #tap: ClientTap;
  readonly #log: SessionLog;
  #application: Application | null = null;
  #stage: "new" | "connecting" | "working" | "closing" | "over" = "new";
  #isDraining = false;
  #endWait: (() => void) | null = null;

  constructor(options: SimulatedClientOptions, parts: SimulatedClientParts) {
    this.id = options.id;
    this.#options = options;
    const { process } = parts;
    const sink = { emit: (event: UntimedEvent): void => (process.isKilled ? undefined : parts.sink.emit(event)) };
    this.#parts = { ...parts, sink };
    const { counts, numbers, scheduler, transport } = parts;
    const calls = new CallBook(options.id, { scheduler, sink, numbers });
    this.#calls = calls;
    const events = {
      onRenewed: (session: number) => this.#each(session, (held) => held.onRenewed()),
      releaseOf: (acquire: number) => calls.releaseOf(acquire),
      get closing() {
        return calls.closing;
      },
    };
    this.#tap = new ClientTap(options.id, { transport, sink, counts }, events);
    this.#log = new SessionLog({
      onEnded: (session, reason) => {
        this.#tap.onSessionEnded(session, reason);
        this.#each(session, (held) => held.onSessionEnded());
      },
      onJeopardy: (session) => this.#each(session, (held) => held.onJeopardy()),
      onRecovered: (session) => this.#each(session, (held) => held.onRecovered()),
    });
  }

  start(): void {
    this.#parts.process.deliver(() => {
      this.#live().catch((error: unknown) => this.#parts.onDefect(error));
    });
  }

  beginDrain(): void {
    this.#isDraining = true;
    this.#parts.process.deliver(() => {
      this.#endWait?.();
      this.#application?.drain();
    });
  }

  openCalls(): readonly OpenCall[] {
    return this.#parts.process.isKilled ? [] : this.#calls.open();
  }

  get isIdle(): boolean {
    return this.#parts.process.isKilled || (this.#stage === "over" && this.#calls.isEmpty);
  }

  get isHolding(): boolean {
    return this.#application !== null && this.#application.held.size > 0;
  }

  kill(): void {
    this.#parts.process.kill();
  }

  describe(): string {
    const { isKilled, isPaused } = this.#parts.process;
    const held = [...(this.#application?.held.values() ?? [])].map(
      ({ call, isLost }) => `${call}${isLost ? " (lost)" : ""}`,
    );
    const open = this.openCalls().map(({ description, ageMs }) => `${description} for ${ageMs.toFixed(0)} ms`);
    const words = [this.id, isKilled ? "dead" : this.#stage, ...(isPaused ? ["paused"] : [])];
    return `${words.join(" ")}; holds ${held.join(", ") || "nothing"}; open: ${open.join("; ") || "nothing"}`;
  }

  async #live(): Promise<void> {
    this.#stage = "connecting";
    const holdfast = await this.#connect();
    if (holdfast !== null) await this.#work(holdfast);
    this.#stage = "over";
  }

  async #work(holdfast: Holdfast): Promise<void> {
    this.#stage = "working";
    const { counts, process, resource, scheduler, sink, streamFor } = this.#parts;
    const { workers, workload } = this.#options;
    const parts = { process, scheduler, sink, counts, resource, calls: this.#calls, tap: this.#tap, workload };
    const application = new Application(this.id, holdfast, parts);
    this.#application = application;
    if (this.#isDraining) application.drain();
    const names = Array.from({ length: workers }, (_, at) => `worker ${at}`);
    const besides = [this.#newWatcher(application), this.#newSequencerTask(application)].filter(
      (task) => task !== null,
    );
    const running = besides.map((task) => task.run());
    await Promise.all(names.map((name) => new Worker(application, streamFor(name)).run()));
    for (const task of besides) task.stop();
    await Promise.all(running);
    const { drainMs } = workload;
    if (drainMs === null) return;
    this.#stage = "closing";
    const close = application.begin({ kind: "close" });
    await holdfast.close({ drainMs });
    application.end(close, { kind: "closed" });
  }

  /** In some clients. */
  #newWatcher(application: Application): Watcher | null {
    const random = this.#parts.streamFor("watcher");
    return random.chance(0.4) ? new Watcher(application, random, this.#parts) : null;
  }

  #newSequencerTask(application: Application): SequencerTask | null {
    const random = this.#parts.streamFor("sequencers");
    return random.chance(0.3) ? new SequencerTask(application, random, this.#parts) : null;
  }

  /** Null: told to stop before a node was reached. */
  async #connect(): Promise<Holdfast | null> {
    const { counts, process, streamFor } = this.#parts;
    const { endpoints, connectTimeoutMs, workload } = this.#options;
    const ports = { clock: process, random: streamFor("library"), transport: this.#tap };
    const options = { endpoints, connectTimeoutMs, ttlMs: workload.ttlMs, info: this.id, logger: this.#log };
    while (!this.#isDraining) {
      try {
        return await this.#calls.follow("connect", connectWith(options, ports));
      } catch (error) {
        counts.add(`connect: ${codeOf(error)}`);
        await this.#wait(reconnectMs);
      }
    }
    return null;
  }

  #wait(ms: number): Promise<void> {
    if (this.#isDraining) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#parts.process.setTimer(ms, () => this.#endWait?.());
      this.#endWait = (): void => {
        this.#endWait = null;
        timer.cancel();
        resolve();
      };
    });
  }

  #each(session: number, act: (held: ReturnType<Application["lossesOf"]>[number]) => void): void {
    for (const held of this.#application?.lossesOf(session) ?? []) act(held);
  }
}
