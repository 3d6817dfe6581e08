/** The facade: checks arguments, keeps callers' promises and time limits, and ties the parts together. */
import type { LockView, PublicKey, SessionView, Token } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { MembersView, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import { AcquireCalls } from "./acquire-calls.js";
import { orRefuse, splitRequest } from "./call-forms.js";
import { elect, lead } from "./election.js";
import type { Campaign, ElectionOptions, Term } from "./election.js";
import { connectionClosed, errorFor, HoldfastError, InvalidArgumentError } from "./errors.js";
import type {
  ForceReleaseOptions,
  Holdfast,
  ListOptions,
  MembersChangeOptions,
  RotateKeyOptions,
  StatusOptions,
} from "./holdfast.js";
import { LeaderFinder } from "./leader-finder.js";
import type { LockHandle } from "./lock-handle.js";
import type { Lock } from "./lock.js";
import type { NodeReport } from "./node-status.js";
import { Observation } from "./observation.js";
import type { Instruments } from "./observation.js";
import { checkDuration, checkName, checkOptionNames, checkSignal, checkText } from "./options.js";
import type {
  AcquireOptions,
  ClientOptions,
  CloseOptions,
  HoldOptions,
  ObserveOptions,
  RequestOptions,
  WatchOptions,
} from "./options.js";
import type { LockContext } from "./platform.js";
import type { ClientPorts, Logger } from "./ports.js";
import { observe } from "./observe.js";
import type { LeaderView } from "./observe.js";
import { oncePer } from "./once-per.js";
import type { OncePerResult } from "./once-per.js";
import { ProcessHold } from "./process-hold.js";
import { Queries } from "./queries.js";
import { Questions } from "./questions.js";
import type { ForcedRelease } from "./queries.js";
import { runBody } from "./run-body.js";
import type { Body } from "./run-body.js";
import { LockSemaphore } from "./semaphore.js";
import type { Semaphore, SemaphoreOptions } from "./semaphore.js";
import type { SequencerCheck } from "./sequencer.js";
import type { SequencerQuery } from "./session.js";
import { SessionPool } from "./session-pool.js";
import { SharedTimer } from "./shared-timer.js";
import type { LeaderLink } from "./leader-link.js";
import type { WatchEvent } from "./watch.js";
import { Watches } from "./watches.js";

export interface Surroundings {
  readonly logger: Logger;
  readonly instruments: Instruments;
  readonly context: LockContext;
}

export class LockClient implements Holdfast {
  private readonly options: ClientOptions;
  private readonly ports: ClientPorts;
  private readonly logger: Logger;
  private readonly hold: ProcessHold;
  private readonly observation: Observation;
  private readonly finder: LeaderFinder;
  private readonly pool: SessionPool;
  private readonly queries: Queries;
  private readonly questions: Questions;
  private readonly watches: Watches;
  private readonly calls: AcquireCalls;
  private seenIndex = 0;
  private lastId = 0;
  private stage: "open" | "closing" | "closed" = "open";
  private closed: Promise<void> | null = null;
  /** Every node refuses this client for good; null again when one doesn't. */
  private refusal: HoldfastError | null = null;
  private onConnected: ((error: HoldfastError | null) => void) | null = null;

  constructor(options: ClientOptions, ports: ClientPorts, surroundings: Surroundings) {
    this.options = options;
    this.ports = ports;
    const { logger, instruments, context } = surroundings;
    this.logger = logger;
    const { clock, random } = ports;
    const leaderEndpoint = (): string | null => this.finder.leader?.endpoint ?? null;
    this.observation = new Observation(instruments, { clock, logger, leaderEndpoint });
    const { observation } = this;
    this.hold = new ProcessHold(clock);
    this.finder = this.newFinder();
    const link = this.newLink();
    const nextId = (): number => {
      this.lastId += 1;
      return this.lastId;
    };
    const sequencer = async (query: SequencerQuery): Promise<string | null> =>
      (await this.queries.ask(query, "sequencer")).sequencer;
    const timer = new SharedTimer(clock, random);
    const parts = { clock, random, timer, link, hold: this.hold, logger, nextId, sequencer, observation, context };
    this.pool = new SessionPool({ ttlMs: options.ttlMs, info: options.info }, parts);
    const onTimeout = (): HoldfastError => this.unanswered(options.connectTimeoutMs);
    this.queries = new Queries({ timeoutMs: options.connectTimeoutMs, onTimeout }, parts);
    const checkOpen = (): void => this.checkOpen();
    const { queries, finder, hold } = this;
    this.questions = new Questions(options, { ports, finder, queries, hold, checkOpen });
    this.watches = new Watches(parts);
    this.calls = new AcquireCalls(options, {
      clock,
      hold,
      observation,
      checkOpen: () => {
        this.checkOpen();
        if (this.refusal !== null) throw this.refusal;
      },
      start: (acquire) => this.pool.acquire(acquire),
      hasLeader: () => this.finder.leader !== null,
      unanswered: (afterMs) => this.unanswered(afterMs),
    });
  }

  /** Resolves when any node of the cluster has greeted; the leader is looked for from then on. Closes the client if it rejects. */
  start(): Promise<void> {
    const { connectTimeoutMs } = this.options;
    return new Promise((resolve, reject) => {
      const timer = this.ports.clock.setTimer(connectTimeoutMs, () =>
        this.onConnected?.(this.unanswered(connectTimeoutMs)),
      );
      this.hold.begin();
      this.onConnected = (error) => {
        this.onConnected = null;
        timer.cancel();
        this.hold.end();
        if (error === null) resolve();
        else {
          this.stop();
          reject(error);
        }
      };
      this.finder.start();
    });
  }

  async acquire(name: string | readonly string[], options?: AcquireOptions): Promise<Lock> {
    return orRefuse(await this.calls.begin("acquire", name, options));
  }

  tryAcquire(name: string | readonly string[], options?: HoldOptions): Promise<Lock | null> {
    return this.calls.begin("tryAcquire", name, options);
  }

  async request<T>(
    name: string | readonly string[],
    optionsOrBody: RequestOptions | ((lock: Lock) => T | PromiseLike<T>),
    givenBody?: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T> {
    const [options, body] = splitRequest<RequestOptions, (lock: Lock) => T | PromiseLike<T>>(optionsOrBody, givenBody);
    return await runBody(await this.calls.begin("request", name, options), body as Body<T>);
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    return new LockSemaphore(name, options, (...given) => this.calls.begin(...given));
  }

  async lead<T>(
    name: string,
    optionsOrBody: ElectionOptions | ((term: Term) => T | PromiseLike<T>),
    givenBody?: (term: Term) => T | PromiseLike<T>,
  ): Promise<T> {
    const [options = {}, body] = splitRequest<ElectionOptions, (term: Term) => T | PromiseLike<T>>(
      optionsOrBody,
      givenBody,
    );
    checkName("name", name);
    checkOptionNames("lead", options);
    return await lead(this.campaign, name, options, body, this.logger);
  }

  elect(name: string, options: ElectionOptions = {}): AsyncGenerator<Term, never> {
    checkName("name", name);
    checkOptionNames("elect", options);
    return elect(this.campaign, name, options);
  }

  oncePer<T>(key: string, windowMs: number, body: (lock: Lock) => T | PromiseLike<T>): Promise<OncePerResult<T>> {
    const tryAcquire = (name: string, options: HoldOptions): Promise<LockHandle | null> =>
      this.calls.begin("tryAcquire", name, options);
    return oncePer(tryAcquire, this.ports.clock, key, windowMs, body);
  }

  watch(name: string, options: WatchOptions = {}): AsyncIterableIterator<WatchEvent, undefined, undefined> {
    checkOptionNames("watch", options);
    const { prefix = false, signal } = options;
    if (typeof prefix !== "boolean") throw new InvalidArgumentError("prefix", "must be true or false");
    checkText("name", name, prefix ? 0 : 1, limits.nameBytesMax);
    checkSignal(signal);
    this.checkOpen();
    return this.watches.begin(name, prefix, signal);
  }

  observe(name: string, options: ObserveOptions = {}): AsyncGenerator<LeaderView | null, void> {
    checkOptionNames("observe", options);
    return observe(this.watch(name, options), () => this.queries.ask({ kind: "inspect", name }, "lock"));
  }

  inspect(name: string): Promise<LockView | null> {
    return this.questions.inspect(name);
  }

  list(options?: ListOptions): Promise<LockView[]> {
    return this.questions.list(options);
  }

  sessions(): Promise<readonly SessionView[]> {
    return this.questions.sessions();
  }

  status(options?: StatusOptions): Promise<NodeReport[]> {
    return this.questions.status(options);
  }

  forceRelease(name: string, token: Token, options?: ForceReleaseOptions): Promise<ForcedRelease> {
    return this.questions.forceRelease(name, token, options);
  }

  check(sequencer: string): Promise<SequencerCheck> {
    return this.questions.check(sequencer);
  }

  publicKeys(): Promise<readonly PublicKey[]> {
    return this.questions.publicKeys();
  }

  rotateKey(options?: RotateKeyOptions): Promise<string> {
    return this.questions.rotateKey(options);
  }

  transfer(to?: string): Promise<NodeAddress | null> {
    return this.questions.transfer(to);
  }

  finalizeUpgrade(): Promise<number> {
    return this.questions.finalizeUpgrade();
  }

  members(): Promise<MembersView> {
    return this.questions.members();
  }

  changeMembers(change: MembersChangeOptions): Promise<number> {
    return this.questions.changeMembers(change);
  }

  metrics(): string {
    return this.observation.metricsText();
  }

  close(options: CloseOptions = {}): Promise<void> {
    try {
      checkOptionNames("close", options);
      checkDuration("drainMs", options.drainMs ?? 0, 0, Number.POSITIVE_INFINITY);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error("unexpected", { cause: error }));
    }
    this.closed ??= new Promise((resolve) => this.beginClose(options.drainMs ?? 0, resolve));
    return this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private readonly campaign: Campaign = async (name, options) => {
    const { heldLongMs = 0 } = options;
    return orRefuse(
      await this.calls.begin("acquire", name, { ...options, heldLongMs, waitMs: Number.POSITIVE_INFINITY }),
    );
  };

  private unanswered(afterMs: number): HoldfastError {
    const { finder } = this;
    if (finder.leader !== null)
      return new HoldfastError("no_quorum", `the leader has not answered within ${afterMs} ms`);
    if (finder.refusal !== null) return errorFor(finder.refusal);
    if (finder.isConnected) return new HoldfastError("no_quorum", `no leader was found within ${afterMs} ms`);
    return new HoldfastError("unreachable", `no node was reached within ${afterMs} ms`, {
      cause: new Error(finder.problems),
    });
  }

  private checkOpen(): void {
    if (this.stage !== "open") throw connectionClosed();
  }

  private beginClose(drainMs: number, onClosed: () => void): void {
    this.stage = "closing";
    this.hold.begin();
    this.onConnected?.(connectionClosed());
    this.calls.failAll(connectionClosed());
    this.queries.close();
    this.watches.fail(connectionClosed());
    this.questions.close();
    const release = (): void => {
      const { connectTimeoutMs } = this.options;
      const timer = this.ports.clock.setTimer(connectTimeoutMs, () => this.pool.endAll("closed"));
      this.pool.close(() => {
        timer.cancel();
        this.stop();
        this.hold.end();
        onClosed();
      });
    };
    if (drainMs === 0) {
      release();
      return;
    }
    const timer = Number.isFinite(drainMs) ? this.ports.clock.setTimer(drainMs, () => this.pool.endDrain()) : null;
    this.pool.drain(() => {
      timer?.cancel();
      release();
    });
  }

  private stop(): void {
    this.stage = "closed";
    this.finder.close();
    this.calls.close();
  }

  private newFinder(): LeaderFinder {
    const { endpoints, info, ttlMs } = this.options;
    const pingMs = Math.min(ttlMs / 6, 5_000);
    return new LeaderFinder(
      { endpoints, info, pingMs },
      this.ports,
      {
        onLeader: (connection) => {
          this.pool.onLeader();
          this.queries.onLeader(connection.claim);
          this.watches.onLeader();
        },
        onMessage: (message) => this.onMessage(message),
        onWelcome: () => {
          this.refusal = null;
          this.onConnected?.(null);
        },
        onRefused: (refusal) => this.onRefused(refusal),
        isUrgent: () => this.hold.isHeld,
        seenIndex: () => this.seenIndex,
      },
      this.logger,
    );
  }

  private newLink(): LeaderLink {
    const { finder } = this;
    return {
      get isReady() {
        return finder.leader !== null;
      },
      hasFeature: (feature) => finder.leader?.welcome?.features.includes(feature) ?? false,
      send: (message) => finder.leader?.send(message),
      onNotLeader: (leader) => finder.onNotLeader(leader),
      suspect: () => finder.suspect(),
      drop: (problem) => finder.drop(problem),
    };
  }

  private onMessage(message: ServerMessage): void {
    switch (message.kind) {
      case "outcome":
        this.seenIndex = Math.max(this.seenIndex, message.index);
        this.pool.onMessage(message);
        return;
      case "answer":
        if (message.result.kind !== "status") this.seenIndex = Math.max(this.seenIndex, message.result.index);
        this.queries.onAnswer(message);
        return;
      case "forced":
      case "transferred":
      case "finalized":
      case "keyRotated":
      case "membersChanged":
        this.queries.onAnswer(message);
        return;
      case "refused":
        if (message.id === null) this.pool.onMessage(message);
        else if (!this.watches.onRefused(message.id, message.refusal))
          this.queries.onRefused(message.id, message.refusal);
        return;
      case "watching":
      case "changes":
        this.seenIndex = Math.max(this.seenIndex, message.index);
        this.watches.onMessage(message);
        return;
      case "welcome":
      case "leader":
      case "nodes":
        return;
      default:
        this.pool.onMessage(message);
    }
  }

  /** Its sessions are of another cluster, or not this client's to use: nothing that is held or awaited can come to a good end. */
  private onRefused(refusal: Refusal): void {
    if (this.refusal !== null) return;
    const error = errorFor(refusal);
    this.refusal = error;
    this.logger.error({ refusal }, "every node refuses this client");
    this.calls.failAll(error);
    this.queries.fail(error);
    this.watches.fail(error);
    this.pool.endAll("session_gone");
    this.onConnected?.(error);
  }
}
