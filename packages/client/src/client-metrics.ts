/** Counts and times of clients, in plain arrays, and their text for Prometheus. Needs no library and no registry. */
import type { Mode } from "@holdfast/lock";
import type { LockLossReason } from "./errors.js";
import { SecondsHistogram } from "./histogram.js";
import { acquireOutcomes, holdEndings, lossReasons, modes, renewalOutcomes, sessionStates } from "./recorder.js";
import type { AcquireOutcome, HoldEnding, Recorder, RenewalOutcome, SessionState } from "./recorder.js";

/**
 * Each client has one of its own, unless `connect({ metrics })` hands it one: several clients of a process may share it, so that their
 * text is printed once. All of its members but prometheusText() are for the clients.
 */
export class ClientMetrics implements Recorder {
  private readonly acquires = modes.map(() => acquireOutcomes.map(() => new SecondsHistogram()));
  private readonly holds = holdEndings.map(() => new SecondsHistogram());
  private readonly margins = new SecondsHistogram();
  private readonly renewals = new Float64Array(renewalOutcomes.length);
  private readonly losses = new Float64Array(lossReasons.length);
  private readonly locks = new Float64Array(modes.length);
  private readonly sessions = new Float64Array(sessionStates.length);

  acquired(mode: Mode, outcome: AcquireOutcome, seconds: number): void {
    this.acquires[modes.indexOf(mode)]?.[acquireOutcomes.indexOf(outcome)]?.record(seconds);
  }

  held(mode: Mode): void {
    add(this.locks, modes.indexOf(mode), 1);
  }

  holdEnded(mode: Mode, ending: HoldEnding, seconds: number): void {
    add(this.locks, modes.indexOf(mode), -1);
    this.holds[holdEndings.indexOf(ending)]?.record(seconds);
  }

  renewal(outcome: RenewalOutcome): void {
    add(this.renewals, renewalOutcomes.indexOf(outcome), 1);
  }

  leaseMargin(seconds: number): void {
    this.margins.record(seconds);
  }

  lost(reason: LockLossReason): void {
    add(this.losses, lossReasons.indexOf(reason), 1);
  }

  sessionMoved(from: SessionState | null, to: SessionState | null): void {
    if (from !== null) add(this.sessions, sessionStates.indexOf(from), -1);
    if (to !== null) add(this.sessions, sessionStates.indexOf(to), 1);
  }

  /** For `/metrics`: the text format of Prometheus, with a line feed at its end. It stands beside other metrics' texts as it is. */
  prometheusText(): string {
    return [...this.acquireLines(), ...this.holdLines(), ...this.renewalLines(), ...this.stateLines(), ""].join("\n");
  }

  private acquireLines(): string[] {
    const name = "holdfast_client_acquire_seconds";
    const series = modes.flatMap((mode, at) =>
      acquireOutcomes.flatMap((outcome, of) =>
        linesOf(this.acquires[at]?.[of], name, `outcome="${outcome}",mode="${mode}"`),
      ),
    );
    return [...headOf(name, "histogram", "From the call of an acquire to its answer"), ...series];
  }

  private holdLines(): string[] {
    const name = "holdfast_client_hold_seconds";
    const series = holdEndings.flatMap((ending, at) => linesOf(this.holds[at], name, `ending="${ending}"`));
    return [...headOf(name, "histogram", "From a grant to its confirmed release, or to the loss"), ...series];
  }

  private renewalLines(): string[] {
    const margin = "holdfast_client_lease_margin_seconds";
    const renewals = "holdfast_client_renewals_total";
    const losses = "holdfast_client_losses_total";
    return [
      ...headOf(margin, "histogram", "What was left of the lease when a renewal was acknowledged"),
      ...this.margins.lines(margin, ""),
      ...headOf(renewals, "counter", "Renewals of leases, acknowledged and failed"),
      ...renewalOutcomes.map((outcome, at) => `${renewals}{outcome="${outcome}"} ${this.renewals[at]}`),
      ...headOf(losses, "counter", "Locks lost while they were held"),
      ...lossReasons.map((reason, at) => `${losses}{reason="${reason}"} ${this.losses[at]}`),
    ];
  }

  private stateLines(): string[] {
    const locks = "holdfast_client_lock_count";
    const sessions = "holdfast_client_session_state";
    return [
      ...headOf(locks, "gauge", "Locks held now"),
      ...modes.map((mode, at) => `${locks}{mode="${mode}"} ${this.locks[at]}`),
      ...headOf(sessions, "gauge", "Sessions in each state now"),
      ...sessionStates.map((state, at) => `${sessions}{state="${state}"} ${this.sessions[at]}`),
    ];
  }
}

function add(counts: Float64Array, at: number, value: number): void {
  counts[at] = (counts[at] ?? 0) + value;
}

function headOf(name: string, type: "counter" | "gauge" | "histogram", help: string): string[] {
  return [`# HELP ${name} ${help}.`, `# TYPE ${name} ${type}`];
}

/** What never happened has no series: most programs use one mode, and each series is 17 lines. */
function linesOf(histogram: SecondsHistogram | undefined, name: string, labels: string): string[] {
  return histogram === undefined || histogram.count === 0 ? [] : histogram.lines(name, labels);
}
