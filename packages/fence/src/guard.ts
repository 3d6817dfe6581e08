import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { IncompatibleResourceError, InvalidArgumentError, UnknownOutcomeError } from "./errors.js";
import type { FenceSource } from "./fence.js";
import { namedFence } from "./guarded.js";
import type { Guarded } from "./guarded.js";
import { checkOptionNames } from "./options.js";
import { StaleReporter, reportingOptionNames } from "./reporting.js";
import type { ReportingOptions } from "./reporting.js";

/** What a register stores for a resource: token and value together, so that one replacement changes both. */
export interface FencedRecord<V> {
  readonly token: number;
  /** Made anew for each write: it tells a write whose answer was lost from another one of the same token and value. */
  readonly writeId: string;
  /** Null when the value was removed. The record stays, for it remembers the token. */
  readonly value: V | null;
}

/** A record as it was read, with what the store needs to replace exactly this one: an ETag, a version, a revision, the text itself. */
export interface VersionedRecord<V, Version> {
  readonly record: FencedRecord<V>;
  readonly version: Version;
}

/** A store with a compare-and-set per resource. */
export interface FenceRegister<V, Version = unknown> {
  /** The newest record (never one from a cache or a lagging replica), or null when there was never one. */
  read(resource: string): Promise<VersionedRecord<V, Version> | null>;
  /**
   * Stores `record` if the newest one still has the version `expected` (null: there is none), in one step of the store, durably.
   * Resolves with false when another was there, and with an error when it surely didn't store it for another reason. Rejects when
   * that isn't known: the guard then reads again.
   */
  compareAndSet(resource: string, expected: Version | null, record: FencedRecord<V>): Promise<boolean | Error>;
}

export interface GuardOptions extends ReportingOptions {
  /** The store's kind in reports and counters. Default "register". */
  readonly name?: string;
}

/**
 * Each round without a success is another writer's success, so a hundred writers at once need a hundred rounds. More than these means
 * that compareAndSet compares something else than read gave.
 */
const roundsMax = 1_000;

/**
 * Guards the values of a store by compare-and-set. Every method refuses a token below the resource's highest with StaleTokenError,
 * having changed nothing, and leaves the register at the token; an equal token is accepted again. The fence must bear its resource.
 */
export class Guard<V> {
  readonly #register: FenceRegister<V>;
  readonly #reporter: StaleReporter;

  /** @throws InvalidArgumentError naming the option. */
  constructor(register: FenceRegister<V>, options: GuardOptions = {}) {
    const parts = register as Partial<FenceRegister<V>> | null;
    if (typeof parts?.read !== "function" || typeof parts.compareAndSet !== "function") {
      throw new InvalidArgumentError("register", "must have the functions read and compareAndSet");
    }
    checkOptionNames(options, "options", ["name", ...reportingOptionNames]);
    const { name = "register" } = options;
    if (typeof name !== "string" || name === "") {
      throw new InvalidArgumentError("options.name", "must be a name that isn't empty");
    }
    this.#register = register;
    this.#reporter = new StaleReporter(name, options);
  }

  /** Replaces the value, whatever it was. */
  async write(lock: FenceSource, value: V): Promise<void> {
    if (value === undefined || value === null) throw new InvalidArgumentError("value", "is needed; see remove()");
    await this.#change(namedFence(lock), () => value);
  }

  /**
   * Replaces the value by what `change` makes of it (null: there is none), and resolves with that. When another writer comes between,
   * `change` is called again with what that one left, so it should do nothing else.
   */
  async update(lock: FenceSource, change: (current: V | null) => V | PromiseLike<V>): Promise<V> {
    if (typeof change !== "function") throw new InvalidArgumentError("change", "must be a function");
    const { value } = await this.#change(namedFence(lock), async (current) => {
      const value = await change(current?.value ?? null);
      if (value === undefined || value === null) throw new InvalidArgumentError("change", "must give a value");
      return value;
    });
    return value as V;
  }

  /** Raises the register and resolves with the value, or null: from now on no older holder can change what was read. */
  async read(lock: FenceSource): Promise<V | null> {
    const fence = namedFence(lock);
    const { value } = await this.#change(fence, (current) =>
      current?.token === fence.token ? keep : (current?.value ?? null),
    );
    return value;
  }

  /** Removes the value; the token stays, so that no older holder can make it again. */
  async remove(lock: FenceSource): Promise<void> {
    await this.#change(namedFence(lock), () => null);
  }

  /** The one rule: the token is compared with the very record that the store then replaces, or refuses to. */
  async #change(fence: Guarded, next: Change<V>): Promise<FencedRecord<V>> {
    const { resource, token } = fence;
    for (let round = 1; round <= roundsMax; round += 1) {
      const found = await this.#register.read(resource);
      const current = found === null ? null : checkedRecord(found.record, resource);
      if (current !== null && current.token > token) throw this.#reporter.refusal(fence, current.token);
      const value = await next(current);
      if (value === keep) {
        if (current === null) throw new IncompatibleResourceError(resource, "there is no record to keep");
        return current;
      }
      const record = { token, writeId: randomUUID(), value };
      if (await this.#store(resource, found?.version ?? null, record)) return record;
      await pauseAfter(round);
    }
    throw new IncompatibleResourceError(
      resource,
      `the register of ${resource} was never written in ${roundsMax} rounds: does compareAndSet compare the version that read gave?`,
    );
  }

  /** Resolves whether the record was stored. An answer that was lost is looked for in the store, where the write's id tells it. */
  async #store(resource: string, expected: unknown, record: FencedRecord<V>): Promise<boolean> {
    let outcome: boolean | Error;
    try {
      outcome = await this.#register.compareAndSet(resource, expected, record);
    } catch (error) {
      const found = await this.#register.read(resource).catch(() => {
        throw new UnknownOutcomeError(resource, null, error, false);
      });
      if (found?.record.writeId === record.writeId) return true;
      // It may have been stored and replaced since, or may still be on its way.
      throw new UnknownOutcomeError(resource, null, error, false);
    }
    if (outcome instanceof Error) throw outcome;
    return outcome;
  }
}

const keep: unique symbol = Symbol("keep");
type Change<V> = (current: FencedRecord<V> | null) => V | null | typeof keep | PromiseLike<V | null>;

function checkedRecord<V>(record: FencedRecord<V>, resource: string): FencedRecord<V> {
  if (!Number.isSafeInteger(record.token) || record.token < 1) {
    throw new IncompatibleResourceError(
      resource,
      `the register of ${resource} holds ${record.token}, which is no token`,
    );
  }
  return record;
}

/** Writers that met once shouldn't meet again. The first rounds are for those who were just in time to lose. */
async function pauseAfter(round: number): Promise<void> {
  if (round > 2) await sleep(Math.random() * Math.min(20, round));
}
