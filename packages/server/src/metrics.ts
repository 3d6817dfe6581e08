/** Figures for Prometheus. Labels are closed sets: never a lock's name, a client or a token. */
import type { Effect, Mode, RequestNumber, SessionId } from "@holdfast/lock";
import type { RoleName } from "@holdfast/raft";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Clock } from "./ports.js";
import { registerProcessMetrics } from "./process-metrics.js";

/** Why a connection, upgrade or frame was turned away. */
const rejectionReasons = [
  "origin",
  "host",
  "not_ready",
  "connection_cap",
  "pending_cap",
  "bad_frame",
  "hello_timeout",
  "slow_reader",
] as const;
export type RejectionReason = (typeof rejectionReasons)[number];

export interface HostFigures {
  readonly term: number;
  readonly commitIndex: number;
  readonly lastApplied: number;
  readonly isLeader: boolean;
  readonly sessions: number;
  readonly locks: number;
  /** Null: not known. */
  readonly waiters: number | null;
}

/** The node host, seen from here: read when Prometheus asks. */
export interface MetricsSource {
  figures(): HostFigures;
  /** The mode in which a lock is held now; null when nobody holds it. */
  modeFor(name: string): Mode | null;
}

export interface TransportFigures {
  readonly connections: number;
  readonly bufferedBytes: number;
}

/** The sockets, seen from here. */
export interface TransportSource {
  figures(): { readonly client: TransportFigures; readonly peer: TransportFigures };
}

export interface Metrics {
  /** What can be read once it exists; until then those gauges are missing. */
  attach(source: MetricsSource): void;
  attachTransport(source: TransportSource): void;
  observeFsync(seconds: number): void;
  /** From an append's sending to its acknowledgement. */
  observeAppend(peer: string, seconds: number): void;
  /** Counted at the serving leader only, so that a sum over the nodes is right. */
  noteEffects(effects: readonly Effect[], isServing: boolean): void;
  noteRole(role: RoleName): void;
  noteRejected(reason: RejectionReason): void;
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Waits that are being timed at once; more go uncounted. */
const timedWaitsMax = 100_000;

export function createMetrics(clock: Pick<Clock, "monotonicMs">): Metrics {
  return new PrometheusMetrics(clock);
}

class PrometheusMetrics implements Metrics {
  private readonly clock: Pick<Clock, "monotonicMs">;
  /** Our own: with two copies of prom-client in a process the global one throws on names used twice. */
  private readonly registry = new Registry();
  private readonly fsync: Histogram;
  private readonly appendDuration: Histogram<"peer">;
  private readonly queueWait: Histogram<"mode">;
  private readonly elections: Counter<"result">;
  private readonly grants: Counter<"mode">;
  private readonly expirations: Counter;
  private readonly revocations: Counter<"reason">;
  private readonly rejected: Counter<"reason">;
  private readonly waits = new Map<string, number>();
  private source: MetricsSource | null = null;
  private transport: TransportSource | null = null;
  private role: RoleName = "follower";

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.clock = clock;
    const registers = [this.registry];
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
      new Counter({ name, help, labelNames, registers });
    const histogram = <Label extends string>(name: string, help: string, labelNames: Label[] = []): Histogram<Label> =>
      new Histogram({ name, help, labelNames, registers, buckets });
    this.fsync = histogram("holdfast_raft_fsync_duration_seconds", "Time of one synced batch");
    this.appendDuration = histogram(
      "holdfast_raft_append_duration_seconds",
      "From an append's sending to its acknowledgement",
      ["peer"],
    );
    this.queueWait = histogram("holdfast_server_queue_wait_duration_seconds", "From a request's waiting to its grant", [
      "mode",
    ]);
    this.elections = counter("holdfast_raft_elections_total", "Elections this node stood in", ["result"]);
    this.grants = counter("holdfast_server_grants_total", "Holds that began, counted at the leader", ["mode"]);
    this.expirations = counter(
      "holdfast_server_expirations_total",
      "Sessions that ended because nothing was heard of them",
    );
    this.revocations = counter("holdfast_server_revocations_total", "Holds taken from a living holder", ["reason"]);
    this.rejected = counter("holdfast_transport_rejected_total", "Connections, upgrades and frames turned away", [
      "reason",
    ]);
    for (const result of ["won", "lost"]) this.elections.inc({ result }, 0);
    for (const reason of rejectionReasons) this.rejected.inc({ reason }, 0);
    this.registerHostGauges();
    this.registerTransportGauges();
    registerProcessMetrics(this.registry);
  }

  attach(source: MetricsSource): void {
    this.source = source;
  }

  attachTransport(source: TransportSource): void {
    this.transport = source;
  }

  observeFsync(seconds: number): void {
    this.fsync.observe(seconds);
  }

  observeAppend(peer: string, seconds: number): void {
    this.appendDuration.observe({ peer }, seconds);
  }

  noteEffects(effects: readonly Effect[], isServing: boolean): void {
    if (!isServing) return;
    for (const effect of effects) {
      if (effect.kind === "outcome") this.noteOutcome(effect);
      else if (effect.kind === "sessionEnded" && effect.reason === "expired") this.expirations.inc();
      else if (effect.kind === "changed" && effect.change === "granted") {
        this.grants.inc({ mode: this.modeFor(effect.name, effect.slot) });
      }
    }
  }

  noteRole(role: RoleName): void {
    const stood = this.role === "candidate" || this.role === "preCandidate";
    if (role === "leader") this.elections.inc({ result: "won" });
    else if (stood && (role === "follower" || role === "learner")) this.elections.inc({ result: "lost" });
    if (role !== "leader") this.waits.clear();
    this.role = role;
  }

  noteRejected(reason: RejectionReason): void {
    this.rejected.inc({ reason });
  }

  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    return { contentType: this.registry.contentType, text: await this.registry.metrics() };
  }

  private noteOutcome(effect: Extract<Effect, { readonly kind: "outcome" }>): void {
    const { session, request, outcome } = effect;
    const key = waitKey(session, request);
    if (outcome.kind === "waiting") {
      if (this.waits.size < timedWaitsMax && !this.waits.has(key)) this.waits.set(key, this.clock.monotonicMs());
      return;
    }
    const sinceMs = this.waits.get(key);
    this.waits.delete(key);
    if (outcome.kind === "lost" && (outcome.reason === "forced" || outcome.reason === "max_hold")) {
      this.revocations.inc({ reason: outcome.reason });
    }
    const [first] = outcome.kind === "granted" ? outcome.grants : [];
    if (first === undefined || sinceMs === undefined) return;
    const seconds = (this.clock.monotonicMs() - sinceMs) / 1_000;
    this.queueWait.observe({ mode: this.modeFor(first.name, first.slot) }, seconds);
  }

  private modeFor(name: string, slot: number | null): Mode | "unknown" {
    if (slot !== null) return "slot";
    // A grant that was lost again within one entry has no mode to look up any more.
    return this.source?.modeFor(name) ?? "unknown";
  }

  private registerHostGauges(): void {
    const gauge = (name: string, help: string, read: (figures: HostFigures) => number | null): void => {
      const own: Gauge = new Gauge({
        name,
        help,
        registers: [this.registry],
        collect: () => {
          const value = this.source === null ? null : read(this.source.figures());
          if (value === null) own.remove();
          else own.set(value);
        },
      });
    };
    gauge("holdfast_raft_term", "The current term", (figures) => figures.term);
    gauge(
      "holdfast_raft_commit_index",
      "Index of the last entry known to be committed",
      (figures) => figures.commitIndex,
    );
    gauge(
      "holdfast_raft_apply_lag",
      "Committed entries that are not applied yet",
      (figures) => figures.commitIndex - figures.lastApplied,
    );
    gauge("holdfast_raft_leader", "1 at the leader, else 0", (figures) => (figures.isLeader ? 1 : 0));
    gauge("holdfast_server_session_count", "Live sessions", (figures) => figures.sessions);
    gauge("holdfast_server_lock_count", "Names that are held, waited for or delayed", (figures) => figures.locks);
    gauge("holdfast_server_waiter_count", "Requests that wait", (figures) => figures.waiters);
  }

  private registerTransportGauges(): void {
    const gauge = (name: string, help: string, read: (figures: TransportFigures) => number): void => {
      const own: Gauge<"kind"> = new Gauge({
        name,
        help,
        labelNames: ["kind"],
        registers: [this.registry],
        collect: () => {
          if (this.transport === null) return;
          const { client, peer } = this.transport.figures();
          own.set({ kind: "client" }, read(client));
          own.set({ kind: "peer" }, read(peer));
        },
      });
    };
    gauge("holdfast_transport_connection_count", "Open connections", (figures) => figures.connections);
    gauge(
      "holdfast_transport_buffered_bytes",
      "Bytes that were sent and have not reached the kernel",
      (figures) => figures.bufferedBytes,
    );
  }
}

function waitKey(session: SessionId, request: RequestNumber): string {
  return `${session}/${request}`;
}
