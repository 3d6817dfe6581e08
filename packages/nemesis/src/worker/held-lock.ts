/** A lock that a worker has: tells the history each change of the library's word on it, and for how long it calls it surely held. */
import type { Lock } from "@holdfast/client";
import { machineMs } from "../clock.js";
import type { Reporter } from "./reporter.js";

export class HeldLock {
  readonly call: number;
  readonly lock: Lock;
  private readonly client: string;
  private readonly session: number | null;
  private readonly reporter: Reporter;
  private isOver = false;
  /** When the library was last asked how long the lock is surely held, and what it said. */
  private look: { readonly atMs: number; readonly leftMs: number };

  constructor(call: number, lock: Lock, parts: { client: string; session: number | null; reporter: Reporter }) {
    this.call = call;
    this.lock = lock;
    this.client = parts.client;
    this.session = parts.session;
    this.reporter = parts.reporter;
    this.look = this.lookNow();
    this.tellLook();
    lock.signal.addEventListener("abort", () => this.onLost(), { once: true });
    if (lock.signal.aborted) this.onLost();
  }

  /** A keepalive was acknowledged: there may be more time left. */
  onRenewed(): void {
    if (this.isOver) return;
    const look = this.lookNow();
    // Over meanwhile: since when, the look before tells.
    if (look.leftMs === 0) return;
    this.look = look;
    this.tellLook();
  }

  /** Its release is called for: from now on the library calls it released. */
  onRelease(): void {
    this.isOver = true;
  }

  private onLost(): void {
    if (this.isOver) return;
    this.isOver = true;
    // A stuck process tells late what a look would have said since the library's own deadline.
    const since = Math.min(machineMs(), this.look.atMs + this.look.leftMs);
    this.reporter.event({ kind: "state", call: this.call, state: "lost", reason: this.lock.lossReason, since });
  }

  private lookNow(): { readonly atMs: number; readonly leftMs: number } {
    return { atMs: machineMs(), leftMs: this.lock.remainingMs() };
  }

  private tellLook(): void {
    const { call, client, session } = this;
    if (session === null || this.look.leftMs === 0) return;
    this.reporter.event({ kind: "remaining", client, call, session, ms: this.look.leftMs });
  }
}
