/**
 * The one place that the client's parts tell of what happens: it goes on to the counters, the diagnostics channels, and to OpenTelemetry if
 * the program has handed that in. Nothing here can fail a lock, and without listeners nothing is allocated.
 */
import type { Mode } from "@holdfast/lock";
import type { ErrorCode } from "@holdfast/wire";
import type { Acquire } from "./acquire.js";
import type { ClientMetrics } from "./client-metrics.js";
import type { AcquireDiagnostic, DiagnosticsChannels, LockDiagnostic, SessionDiagnostic } from "./diagnostics.js";
import { HoldfastError } from "./errors.js";
import type { LockLossReason } from "./errors.js";
import type { ReleaseResult } from "./lock.js";
import type { OpenTelemetryRecorder, OpenTelemetrySpan, Spans } from "./open-telemetry.js";
import type { Clock, Logger } from "./ports.js";
import type { AcquireOutcome, HoldEnding, RenewalOutcome, SessionState } from "./recorder.js";

export interface Instruments {
  readonly metrics: ClientMetrics;
  readonly channels: DiagnosticsChannels;
  readonly recorder: OpenTelemetryRecorder | null;
  readonly spans: Spans | null;
}

export interface ObservationParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** "host:port" of the node that leads, while one is known. */
  readonly leaderEndpoint: () => string | null;
}

/** A hold, as it is told of. */
export interface ObservedHold {
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly grantToken: number;
  readonly session: number;
  /** By the monotonic clock. */
  readonly grantedMs: number;
  readonly heldLongMs: number;
}

export class Observation {
  private readonly instruments: Instruments;
  private readonly parts: ObservationParts;

  constructor(instruments: Instruments, parts: ObservationParts) {
    this.instruments = instruments;
    this.parts = parts;
  }

  metricsText(): string {
    return this.instruments.metrics.prometheusText();
  }

  /** Null: nobody traces. */
  beginAcquire(names: readonly string[], mode: Mode): OpenTelemetrySpan | null {
    return this.instruments.spans?.begin("acquire", names, mode, null) ?? null;
  }

  /** `error`: what its caller is answered with, unless it was granted or refused with null. */
  acquireEnded(acquire: Acquire, outcome: AcquireOutcome, error: unknown): void {
    const { metrics, recorder, channels, spans } = this.instruments;
    const { names, mode } = acquire.request;
    const durationMs = this.parts.clock.monotonicMs() - acquire.beganMs;
    const code = outcome === "aborted" ? null : codeOf(error);
    metrics.acquired(mode, outcome, durationMs / 1_000);
    recorder?.acquired(mode, outcome, durationMs / 1_000, outcome === "refused" ? null : code);
    const { lock, span } = acquire;
    const token = lock?.grantToken ?? null;
    const session = lock?.session ?? null;
    if (channels.acquire.hasSubscribers) {
      const facts: AcquireDiagnostic = { names, mode, outcome, durationMs, token, session, code };
      channels.acquire.publish(facts);
    }
    if (span === null || spans === null) return;
    const failed = outcome === "error" || outcome === "timeout" ? (code ?? "_OTHER") : null;
    spans.end(
      span,
      { "holdfast.acquire.outcome": outcome, ...tokenOf(token), ...serverOf(this.parts.leaderEndpoint()) },
      failed,
    );
  }

  held(mode: Mode): void {
    this.instruments.metrics.held(mode);
    this.instruments.recorder?.held(mode);
  }

  holdEnded(hold: ObservedHold, ending: HoldEnding): void {
    const { metrics, recorder, channels } = this.instruments;
    const heldMs = this.heldMs(hold);
    metrics.holdEnded(hold.mode, ending, heldMs / 1_000);
    recorder?.holdEnded(hold.mode, ending, heldMs / 1_000);
    if (ending === "released" && channels.lock.hasSubscribers) this.publishLock("released", hold, null);
  }

  lost(hold: ObservedHold, reason: LockLossReason): void {
    const { metrics, recorder, channels } = this.instruments;
    metrics.lost(reason);
    recorder?.lost(reason);
    if (channels.lock.hasSubscribers) this.publishLock("lost", hold, reason);
  }

  /** Its holder said how long is long. The line names no lock: whoever may see names finds it by its token, or on the channel. */
  heldLong(hold: ObservedHold): void {
    const { grantToken: token, session, heldLongMs } = hold;
    const facts = { token, session, heldMs: Math.round(this.heldMs(hold)), heldLongMs };
    this.parts.logger.warn(facts, "a lock is held long");
    if (this.instruments.channels.lock.hasSubscribers) this.publishLock("held_long", hold, null);
  }

  beginRelease(hold: ObservedHold, acquired: OpenTelemetrySpan | null): OpenTelemetrySpan | null {
    return this.instruments.spans?.begin("release", hold.names, hold.mode, acquired) ?? null;
  }

  /** `result` null: the release was refused as wrong. */
  releaseEnded(span: OpenTelemetrySpan | null, hold: ObservedHold, result: ReleaseResult | null): void {
    if (span === null) return;
    const outcome = result === null ? {} : { "holdfast.release.result": result };
    const failed = result === null ? "invalid_argument" : null;
    this.instruments.spans?.end(span, { ...outcome, ...tokenOf(hold.grantToken) }, failed);
  }

  renewed(marginMs: number): void {
    const { metrics, recorder } = this.instruments;
    metrics.renewal("renewed");
    metrics.leaseMargin(marginMs / 1_000);
    recorder?.renewal("renewed");
    recorder?.leaseMargin(marginMs / 1_000);
  }

  renewalFailed(outcome: Exclude<RenewalOutcome, "renewed">): void {
    this.instruments.metrics.renewal(outcome);
    this.instruments.recorder?.renewal(outcome);
  }

  session(from: SessionState | null, to: SessionState | null, facts: SessionDiagnostic): void {
    const { metrics, recorder, channels } = this.instruments;
    metrics.sessionMoved(from, to);
    recorder?.sessionMoved(from, to);
    if (channels.session.hasSubscribers) channels.session.publish(facts);
  }

  private publishLock(type: LockDiagnostic["type"], hold: ObservedHold, reason: LockLossReason | null): void {
    const { names, mode, grantToken: token, session } = hold;
    const facts: LockDiagnostic = { type, names, mode, token, session, heldMs: this.heldMs(hold), reason };
    this.instruments.channels.lock.publish(facts);
  }

  private heldMs(hold: ObservedHold): number {
    return this.parts.clock.monotonicMs() - hold.grantedMs;
  }
}

function codeOf(error: unknown): ErrorCode | null {
  return error instanceof HoldfastError ? error.code : null;
}

function tokenOf(token: number | null): { "holdfast.lock.token"?: number } {
  return token === null ? {} : { "holdfast.lock.token": token };
}

/** As OpenTelemetry's conventions name them. */
function serverOf(endpoint: string | null): { "server.address"?: string; "server.port"?: number } {
  if (endpoint === null) return {};
  const colon = endpoint.lastIndexOf(":");
  return { "server.address": endpoint.slice(0, colon), "server.port": Number(endpoint.slice(colon + 1)) };
}
