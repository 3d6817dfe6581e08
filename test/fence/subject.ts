/** What the parts of the one suite share. */
import { StaleTokenError } from "@holdfast/fence";
import type { PrometheusFenceMetrics, StaleReport } from "@holdfast/fence";
import type { GuardedStore, Place, StoreKind } from "./guarded-store.js";

export interface Subject {
  readonly kind: StoreKind;
  place: Place;
  store: GuardedStore;
  readonly reports: StaleReport[];
  readonly metrics: PrometheusFenceMetrics;
}

export interface ContractOptions {
  /** Leaves out what takes other processes, for a store that serves this one alone. */
  readonly isOneProcess?: boolean;
  /** For all of it, default 240,000. */
  readonly limitMs?: number;
}

/** Why a row about several resources is skipped. */
export const oneAtATime = "this store changes one resource at a time";

let lastResource = 0;

/** A fresh resource, so that tests don't meet. */
export function freshResource(name = "doc"): string {
  lastResource += 1;
  return `${name}/${process.pid}-${lastResource}`;
}

export function isStale(presented: number, highest: number, resource: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof StaleTokenError &&
    error.presented === presented &&
    error.highest === highest &&
    error.resource === resource;
}
