/** The facade: checks arguments, keeps callers' promises and time limits, and ties the parts together. */
import type { LockView, SessionView, Token } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { MembersView, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import { AcquireCalls } from "./acquire-calls.js";
import { orRefuse, splitRequest } from "./call-forms.js";
import { elect, lead } from "./election.js";
import type { Campaign, ElectionOptions, Term } from "./election.js";
import { connectionClosed, errorFor, HoldfastError } from "./errors.js";
import type { ForceReleaseOptions, Holdfast, ListOptions, MembersChangeOptions, StatusOptions } from "./holdfast.js";
import { LeaderFinder } from "./leader-finder.js";
import type { LockHandle } from "./lock-handle.js";
import { checkMembersChange } from "./members-change.js";
import type { Lock } from "./lock.js";
import { reportOf } from "./node-status.js";
import type { NodeReport } from "./node-status.js";
import { checkDuration, checkName, checkOptionNames, checkText, checkWhole } from "./options.js";
import type { AcquireOptions, ClientOptions, CloseOptions, HoldOptions, RequestOptions } from "./options.js";
import type { ClientPorts, Logger } from "./ports.js";
import { oncePer } from "./once-per.js";
import type { OncePerResult } from "./once-per.js";
import { ProcessHold } from "./process-hold.js";
import { Queries } from "./queries.js";
import type { ForcedRelease } from "./queries.js";
import { runBody } from "./run-body.js";
import type { Body } from "./run-body.js";
import { LockSemaphore } from "./semaphore.js";
import type { Semaphore, SemaphoreOptions } from "./semaphore.js";
import { SessionPool } from "./session-pool.js";
import type { SessionLink } from "./session.js";

const timerMsMax = 2 ** 31 - 1;

export class LockClient implements Holdfast {
  private readonly options: ClientOptions;
  private readonly ports: ClientPorts;
  private readonly logger: Logger;
  private readonly hold: ProcessHold;
  private readonly finder: LeaderFinder;
  private readonly pool: SessionPool;
  private readonly queries: Queries;
  private readonly calls: AcquireCalls;
  private readonly reportEnders = new Set<() => void>();
  private seenIndex = 0;
  private stage: "open" | "closing" | "closed" = "open";
  private closed: Promise<void> | null = null;
  /** Every node refuses this client for good; null again when one doesn't. */
  private refusal: HoldfastError | null = null;
  private onConnected: ((error: HoldfastError | null) => void) | null = null;

  constructor(options: ClientOptions, ports: ClientPorts, logger: Logger) {
    this.options = options;
    this.ports = ports;
    this.logger = logger;
    const { clock, random } = ports;
    this.hold = new ProcessHold(clock);
    this.finder = this.newFinder();
    const link = this.newLink();
    const parts = { clock, random, link, hold: this.hold, logger };
    this.pool = new SessionPool({ ttlMs: options.ttlMs, info: options.info }, parts);
    const onTimeout = (): HoldfastError => this.unanswered(options.connectTimeoutMs);
    this.queries = new Queries({ timeoutMs: options.connectTimeoutMs, onTimeout }, parts);
    this.calls = new AcquireCalls(options, {
      clock,
      hold: this.hold,
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

  async inspect(name: string): Promise<LockView | null> {
    checkName("name", name);
    this.checkOpen();
    const { lock } = await this.queries.ask({ kind: "inspect", name }, "lock");
    return lock;
  }

  async list(options: ListOptions = {}): Promise<LockView[]> {
    checkOptionNames("list", options);
    const { prefix = "" } = options;
    checkText("prefix", prefix, 0, limits.nameBytesMax);
    this.checkOpen();
    const all: LockView[] = [];
    for (;;) {
      const after = all.at(-1)?.name ?? "";
      const limit = limits.queryLimitMax;
      const { locks, more } = await this.queries.ask({ kind: "list", prefix, after, limit }, "locks");
      all.push(...locks);
      if (!more || locks.length === 0) return all;
    }
  }

  async sessions(): Promise<readonly SessionView[]> {
    this.checkOpen();
    const { sessions } = await this.queries.ask({ kind: "sessions", limit: limits.queryLimitMax }, "sessions");
    return sessions;
  }

  async status(options: StatusOptions = {}): Promise<NodeReport[]> {
    checkOptionNames("status", options);
    const { timeoutMs = 3_000 } = options;
    checkDuration("timeoutMs", timeoutMs, 1, timerMsMax);
    this.checkOpen();
    const shared = {
      info: this.options.info,
      clusterId: this.finder.clusterId,
      seenIndex: 0,
      pingMs: timeoutMs,
      isUrgent: () => false,
    };
    this.hold.begin();
    const reports = this.finder.endpoints.map((endpoint) =>
      reportOf({ endpoint, ...shared }, this.ports, timeoutMs, this.reportEnders),
    );
    return await Promise.all(reports).finally(() => this.hold.end());
  }

  async forceRelease(name: string, token: Token, options: ForceReleaseOptions = {}): Promise<ForcedRelease> {
    checkName("name", name);
    checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
    checkOptionNames("forceRelease", options);
    // 64 characters have at most the 256 bytes that a principal may have.
    const { lockDelayMs = 0, principal = Array.from(this.options.info).slice(0, 64).join("") } = options;
    checkWhole("lockDelayMs", lockDelayMs, 0, limits.lockDelayMsMax);
    checkText("principal", principal, 0, limits.principalBytesMax);
    this.checkOpen();
    return await this.queries.forceRelease(name, token, principal, lockDelayMs);
  }

  async transfer(to?: string): Promise<NodeAddress | null> {
    if (to !== undefined) checkText("to", to, 1, limits.idBytesMax);
    this.checkOpen();
    return await this.queries.transfer(to ?? null);
  }

  async finalizeUpgrade(): Promise<number> {
    this.checkOpen();
    return await this.queries.finalize();
  }

  async members(): Promise<MembersView> {
    this.checkOpen();
    return await this.queries.members();
  }

  async changeMembers(change: MembersChangeOptions): Promise<number> {
    const checked = checkMembersChange(change);
    this.checkOpen();
    return await this.queries.changeMembers(checked);
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

  private readonly campaign: Campaign = async (name, options) =>
    orRefuse(await this.calls.begin("acquire", name, { ...options, waitMs: Number.POSITIVE_INFINITY }));

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
    for (const end of [...this.reportEnders]) end();
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

  private newLink(): SessionLink {
    const { finder } = this;
    return {
      get isReady() {
        return finder.leader !== null;
      },
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
      case "membersChanged":
        this.queries.onAnswer(message);
        return;
      case "refused":
        if (message.id !== null) this.queries.onRefused(message.id, message.refusal);
        else this.pool.onMessage(message);
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
    this.pool.endAll("session_gone");
    this.onConnected?.(error);
  }
}
