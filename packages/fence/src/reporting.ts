import { hostname } from "node:os";

import { InvalidArgumentError, StaleTokenError } from "./errors.js";
import type { Guarded } from "./guarded.js";
import type { FenceMetrics } from "./metrics.js";

/** A write that was refused: a corruption that was stopped. */
export interface StaleReport {
  /** Which guard refused: `postgres`, `mysql`, `redis`, `sqlite`, `files`, `s3`, `http`, or the name that a Guard was given. */
  readonly guard: string;
  readonly resource: string;
  readonly resourceClass: string;
  /** Who presented the token: the fence's `holder`, else this process, as `host/pid`. */
  readonly holder: string;
  readonly presented: number;
  readonly highest: number;
}

/** What every guard can be told about its refusals. */
export interface ReportingOptions {
  /** Called for each refused token, before the call rejects. What it throws becomes a warning of the process, and changes nothing. */
  readonly onStale?: (report: StaleReport) => unknown;
  /** Counts refusals: `prometheusFenceMetrics()`, `openTelemetryFenceMetrics(meter)`, or your own. */
  readonly metrics?: FenceMetrics;
  /** A kind of resource, such as "documents", for the counters: never a name that grows with the data. Or a function that tells it. */
  readonly resourceClass?: string | ((resource: string) => string);
}

export const reportingOptionNames = ["onStale", "metrics", "resourceClass"] as const;

/** Tells of refusals on behalf of one guard. */
export class StaleReporter {
  readonly #guard: string;
  readonly #options: ReportingOptions;
  readonly #classOf: (resource: string) => string;

  /** @throws InvalidArgumentError naming the option. */
  constructor(guard: string, options: ReportingOptions, defaultClass: string = "unclassified") {
    const { onStale, metrics, resourceClass = defaultClass } = options;
    if (onStale !== undefined && typeof onStale !== "function") {
      throw new InvalidArgumentError("options.onStale", "must be a function");
    }
    if (metrics !== undefined && typeof (metrics as Partial<FenceMetrics> | null)?.rejected !== "function") {
      throw new InvalidArgumentError("options.metrics", "must have a function rejected(guard, resourceClass)");
    }
    if (typeof resourceClass !== "function" && (typeof resourceClass !== "string" || resourceClass === "")) {
      throw new InvalidArgumentError("options.resourceClass", "must be a name that isn't empty, or a function");
    }
    this.#guard = guard;
    this.#options = { ...options };
    this.#classOf = typeof resourceClass === "function" ? resourceClass : () => resourceClass;
    // A counter that first appears as 1 has not risen, for whoever watches its increase.
    if (typeof resourceClass === "string") metrics?.watched?.(guard, resourceClass);
  }

  /** Tells of the refusal, and gives the error to throw. The answer to the caller doesn't depend on who listens. */
  refusal(guarded: Guarded, highest: number): StaleTokenError {
    const { resource, token: presented, holder = `${hostname()}/${process.pid}` } = guarded;
    warnOf(() => {
      const resourceClass = this.#classOf(resource);
      this.#options.metrics?.rejected(this.#guard, resourceClass);
      return this.#options.onStale?.({ guard: this.#guard, resource, resourceClass, holder, presented, highest });
    });
    return new StaleTokenError(resource, presented, highest);
  }
}

function warnOf(report: () => unknown): void {
  const warn = (error: unknown): void => process.emitWarning(`a report of a stale token failed: ${String(error)}`);
  try {
    const told = report();
    if (told instanceof Promise) told.catch(warn);
  } catch (error) {
    warn(error);
  }
}
