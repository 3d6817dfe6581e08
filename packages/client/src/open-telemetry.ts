/**
 * Spans and metrics by OpenTelemetry. The program hands its tracer and meter in; `@opentelemetry/api` is not imported, also not when it is
 * there: a library that looks for it finds another copy than the program's at times and reports into nothing, and it would be one more
 * module that a bundle for browsers has to leave out. Their shapes here are the part that is used.
 */
import type { Mode } from "@holdfast/lock";
import { isTraceparent } from "@holdfast/wire";
import type { ErrorCode } from "@holdfast/wire";
import { InvalidArgumentError } from "./errors.js";
import type { LockLossReason } from "./errors.js";
import { secondsBounds } from "./histogram.js";
import type { AcquireOutcome, HoldEnding, Recorder, RenewalOutcome, SessionState } from "./recorder.js";

type Attributes = Record<string, string>;

interface InstrumentOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

export interface OpenTelemetryMeter {
  createCounter(name: string, options?: InstrumentOptions): { add(value: number, attributes?: Attributes): void };
  createUpDownCounter(name: string, options?: InstrumentOptions): { add(value: number, attributes?: Attributes): void };
  createHistogram(name: string, options?: InstrumentOptions): { record(value: number, attributes?: Attributes): void };
}

export interface OpenTelemetrySpanOptions {
  kind?: number;
  attributes?: Record<string, string | number | string[]>;
  links?: { context: OpenTelemetrySpanContext }[];
}

/** Handed back, and told to the cluster. */
export interface OpenTelemetrySpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

export interface OpenTelemetrySpan {
  setAttribute(key: string, value: string | number): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  spanContext(): OpenTelemetrySpanContext;
  end(): void;
}

export interface OpenTelemetryTracer {
  startSpan(name: string, options?: OpenTelemetrySpanOptions): OpenTelemetrySpan;
}

/** SpanKind.CLIENT and SpanStatusCode.ERROR of the API. */
const clientKind = 2;
const errorStatus = 2;

export function checkMeter(meter: unknown): void {
  const { createCounter, createUpDownCounter, createHistogram } = (meter ?? {}) as Partial<OpenTelemetryMeter>;
  if ([createCounter, createUpDownCounter, createHistogram].every((each) => typeof each === "function")) return;
  throw new InvalidArgumentError("meter", "must have the shape of an OpenTelemetry Meter, with createHistogram()");
}

export function checkTracer(tracer: unknown): void {
  if (typeof (tracer as Partial<OpenTelemetryTracer> | null)?.startSpan === "function") return;
  throw new InvalidArgumentError("tracer", "must have the shape of an OpenTelemetry Tracer, with startSpan()");
}

/** The instruments of a meter. What they throw stays with them: a full exporter must not cost a lock. */
export class OpenTelemetryRecorder implements Recorder {
  private readonly acquires: ReturnType<OpenTelemetryMeter["createHistogram"]>;
  private readonly holds: ReturnType<OpenTelemetryMeter["createHistogram"]>;
  private readonly margins: ReturnType<OpenTelemetryMeter["createHistogram"]>;
  private readonly renewals: ReturnType<OpenTelemetryMeter["createCounter"]>;
  private readonly losses: ReturnType<OpenTelemetryMeter["createCounter"]>;
  private readonly locks: ReturnType<OpenTelemetryMeter["createUpDownCounter"]>;
  private readonly sessions: ReturnType<OpenTelemetryMeter["createUpDownCounter"]>;
  /** One object for each combination, made when it is first met: all words are of closed sets. */
  private readonly known = new Map<string, Attributes>();

  constructor(meter: OpenTelemetryMeter) {
    const seconds = (description: string): InstrumentOptions => ({
      description,
      unit: "s",
      advice: { explicitBucketBoundaries: [...secondsBounds] },
    });
    const name = (rest: string): string => `holdfast.client.${rest}`;
    this.acquires = meter.createHistogram(
      name("acquire.duration"),
      seconds("From the call of an acquire to its answer"),
    );
    this.holds = meter.createHistogram(
      name("hold.duration"),
      seconds("From a grant to its confirmed release, or to the loss"),
    );
    this.margins = meter.createHistogram(
      name("lease.margin"),
      seconds("What was left of the lease when a renewal was acknowledged"),
    );
    this.renewals = meter.createCounter(name("renewals"), {
      description: "Renewals of leases, acknowledged and failed",
      unit: "{renewal}",
    });
    this.losses = meter.createCounter(name("losses"), {
      description: "Locks lost while they were held",
      unit: "{loss}",
    });
    this.locks = meter.createUpDownCounter(name("lock.count"), { description: "Locks held now", unit: "{lock}" });
    this.sessions = meter.createUpDownCounter(name("session.state"), {
      description: "Sessions in each state now",
      unit: "{session}",
    });
  }

  acquired(mode: Mode, outcome: AcquireOutcome, seconds: number, code: ErrorCode | null): void {
    const attributes = this.attributesFor(`${mode} ${outcome} ${code ?? ""}`, () => ({
      "holdfast.acquire.outcome": outcome,
      "holdfast.lock.mode": mode,
      ...(code === null ? {} : { "error.type": code }),
    }));
    attempt(() => this.acquires.record(seconds, attributes));
  }

  held(mode: Mode): void {
    attempt(() => this.locks.add(1, this.one("holdfast.lock.mode", mode)));
  }

  holdEnded(mode: Mode, ending: HoldEnding, seconds: number): void {
    attempt(() => this.locks.add(-1, this.one("holdfast.lock.mode", mode)));
    attempt(() => this.holds.record(seconds, this.one("holdfast.hold.ending", ending)));
  }

  renewal(outcome: RenewalOutcome): void {
    attempt(() => this.renewals.add(1, this.one("holdfast.renewal.outcome", outcome)));
  }

  leaseMargin(seconds: number): void {
    attempt(() => this.margins.record(seconds));
  }

  lost(reason: LockLossReason): void {
    attempt(() => this.losses.add(1, this.one("holdfast.loss.reason", reason)));
  }

  sessionMoved(from: SessionState | null, to: SessionState | null): void {
    const key = "holdfast.session.state";
    if (from !== null) attempt(() => this.sessions.add(-1, this.one(key, from)));
    if (to !== null) attempt(() => this.sessions.add(1, this.one(key, to)));
  }

  private one(key: string, value: string): Attributes {
    return this.attributesFor(`${key} ${value}`, () => ({ [key]: value }));
  }

  private attributesFor(words: string, make: () => Attributes): Attributes {
    const known = this.known.get(words) ?? make();
    this.known.set(words, known);
    return known;
  }
}

export type SpanAttributes = Readonly<Record<string, string | number>>;

/** The spans `acquire` and `release`. Holding is none: it may last for days, and a release links to its acquire. */
export class Spans {
  private readonly tracer: OpenTelemetryTracer;

  constructor(tracer: OpenTelemetryTracer) {
    this.tracer = tracer;
  }

  /** Child of what is active where it is called. Null: the tracer failed. */
  begin(
    name: "acquire" | "release",
    names: readonly string[],
    mode: Mode,
    after: OpenTelemetrySpan | null,
  ): OpenTelemetrySpan | null {
    const [only = ""] = names;
    const of = names.length === 1 ? { "holdfast.lock.name": only } : { "holdfast.lock.names": [...names] };
    const links = after === null ? undefined : attempt(() => [{ context: after.spanContext() }]);
    const options: OpenTelemetrySpanOptions = { kind: clientKind, attributes: { ...of, "holdfast.lock.mode": mode } };
    if (links !== undefined) options.links = links;
    return attempt(() => this.tracer.startSpan(name, options)) ?? null;
  }

  /** `errorType`: it failed, and for what. */
  end(span: OpenTelemetrySpan, attributes: SpanAttributes, errorType: string | null): void {
    attempt(() => {
      for (const [key, value] of Object.entries(attributes)) span.setAttribute(key, value);
      if (errorType !== null) {
        span.setAttribute("error.type", errorType);
        span.setStatus({ code: errorStatus });
      }
    });
    attempt(() => span.end());
  }
}

/** What the cluster is told of a span, for its log. Null without one, and for one that no tracer's context comes from. */
export function traceparentOf(span: OpenTelemetrySpan | null): string | null {
  const context = span === null ? undefined : attempt(() => span.spanContext());
  if (context === undefined) return null;
  const { traceId, spanId, traceFlags } = context;
  const text = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  return isTraceparent(text) ? text : null;
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
