/** What a worker asks of its client library, told to the history as calls and their returns. */
import { subscribe } from "node:diagnostics_channel";
import type { CallResult, Operation } from "@holdfast/checker";
import { connectWith, createNodePorts, HoldfastError } from "@holdfast/client";
import type { Holdfast, Lock, ReleaseResult, SessionDiagnostic } from "@holdfast/client";
import { HeldLock } from "./held-lock.js";
import type { WorkerOrder } from "./protocol.js";
import type { Reporter } from "./reporter.js";
import { infoFor, Tap } from "./tap.js";

/** For the first answer of any node: the cluster may be cut off for as long as a fault lasts. */
const connectMs = 60_000;
/** Of one acquire: through the longest fault that a scenario allows. */
const waitMs = 120_000;

export class Application {
  private readonly order: WorkerOrder;
  private readonly reporter: Reporter;
  private readonly holdfast: Holdfast;
  private readonly tap: Tap;
  private readonly held: Set<HeldLock>;
  /** Call of an acquire -> the call that releases it. */
  private readonly releases: Map<number, number>;
  private nextCall: number;
  private readonly giveUp = new AbortController();
  private readonly sessions: SessionEnds;

  private constructor(parts: {
    order: WorkerOrder;
    reporter: Reporter;
    holdfast: Holdfast;
    tap: Tap;
    held: Set<HeldLock>;
    releases: Map<number, number>;
    sessions: SessionEnds;
  }) {
    this.order = parts.order;
    this.reporter = parts.reporter;
    this.holdfast = parts.holdfast;
    this.tap = parts.tap;
    this.held = parts.held;
    this.releases = parts.releases;
    this.nextCall = parts.order.firstCall;
    this.sessions = parts.sessions;
  }

  static async open(order: WorkerOrder, reporter: Reporter): Promise<Application> {
    const { client, addresses, endpoints, ttlMs } = order;
    const held = new Set<HeldLock>();
    const sessions = new SessionEnds();
    const releases = new Map<number, number>();
    const ports = createNodePorts();
    const events = {
      onRenewed: () => {
        for (const lock of held) lock.onRenewed();
      },
      releaseOf: (acquire: number) => releases.get(acquire) ?? null,
    };
    const tap = new Tap(client, { transport: ports.transport, addresses, reporter, events });
    subscribe("holdfast:client:session", (message) => {
      const { session, state, reason } = message as SessionDiagnostic;
      if (state !== "ended" || session === null) return;
      tap.onSessionEnded(session, String(reason));
      sessions.onEnd();
    });
    const holdfast = await connectWith(
      { endpoints, ttlMs, connectTimeoutMs: connectMs, info: client },
      { ...ports, transport: tap },
    );
    return new Application({ order, reporter, holdfast, tap, held, releases, sessions });
  }

  /**
   * Null when it was not granted. The prober doesn't ask again in another session for what its lost one may have been granted meanwhile:
   * that stays closed until the lost one expires, and says nothing of the service.
   */
  async acquire(name: string): Promise<HeldLock | null> {
    const op = { kind: "acquire", names: [name], mode: "exclusive", slots: 0, wait: true, maxHoldMs: 0 } as const;
    const call = this.begin(op);
    const signals = [this.giveUp.signal, ...(this.order.role === "prober" ? [this.sessions.nextEnd] : [])];
    let lock: Lock;
    try {
      lock = await this.holdfast.acquire(name, { waitMs, info: infoFor(call), signal: AbortSignal.any(signals) });
    } catch (error) {
      this.end(call, this.acquireFailure(error, call));
      return null;
    }
    const hold = this.tap.holdOf(call, lock.token);
    const grants = lock.grants.map(({ name: each, token, slot }) => ({ name: each, token, slot }));
    const session = hold?.session ?? null;
    this.end(call, { kind: "acquired", grants, session, request: hold?.request ?? null });
    const held = new HeldLock(call, lock, { client: this.order.client, session, reporter: this.reporter });
    this.held.add(held);
    return held;
  }

  async release(held: HeldLock): Promise<void> {
    const call = this.begin({ kind: "release", of: held.call });
    this.releases.set(held.call, call);
    held.onRelease();
    this.held.delete(held);
    try {
      this.end(call, releasedAs(await held.lock.release()));
    } catch (error) {
      this.end(call, { kind: "unknown", code: codeOf(error) });
    }
  }

  /** Ends what waits. */
  abandonWaiting(): void {
    this.giveUp.abort(new Abandoned());
  }

  async close(): Promise<void> {
    const call = this.begin({ kind: "close" });
    await this.holdfast.close();
    this.end(call, { kind: "closed" });
  }

  private begin(op: Operation): number {
    const call = this.nextCall;
    this.nextCall += 1;
    this.reporter.event({ kind: "call", client: this.order.client, call, op });
    return call;
  }

  private end(call: number, result: CallResult): void {
    this.reporter.event({ kind: "return", call, result });
  }

  private acquireFailure(error: unknown, call: number): CallResult {
    if (error instanceof Abandoned) return { kind: "gaveUp" };
    const code = codeOf(error);
    if (code === "wait_timeout") return { kind: "gaveUp" };
    return this.tap.wasSent(call) ? { kind: "unknown", code } : { kind: "failed", code };
  }
}

class Abandoned extends Error {}

class SessionEnds {
  private next = new AbortController();

  /** Aborted when the session that runs now, or else the next one, has ended. */
  get nextEnd(): AbortSignal {
    return this.next.signal;
  }

  onEnd(): void {
    this.next.abort(new Abandoned());
    this.next = new AbortController();
  }
}

/** What is no error of the library's is a fault of ours. */
function codeOf(error: unknown): string {
  if (error instanceof HoldfastError) return error.code;
  throw error;
}

function releasedAs(result: ReleaseResult): CallResult {
  switch (result) {
    case "released":
      return { kind: "released", how: "released" };
    case "already-released":
      return { kind: "released", how: "alreadyReleased" };
    case "already-lost":
      return { kind: "released", how: "alreadyLost" };
    default:
      return result satisfies never;
  }
}
