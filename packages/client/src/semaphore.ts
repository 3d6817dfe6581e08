/** Semaphores: `slots` places under one name, each with a token of its own. */
import { limits } from "@holdfast/wire";
import type { LockHandle } from "./lock-handle.js";
import type { Lock } from "./lock.js";
import { checkName, checkOptionNames, checkWhole } from "./options.js";
import type { AcquireOptions, HoldOptions, RequestOptions } from "./options.js";
import { runBody } from "./run-body.js";
import type { Body } from "./run-body.js";
import { orRefuse, splitRequest } from "./call-forms.js";

export interface SemaphoreOptions {
  /** How many may hold a place at once, 1 to 1,024. Whoever uses the name must say the same number, or is refused with slots_differ. */
  readonly slots: number;
}

type WithoutMode<Options> = Omit<Options, "mode">;

/** One place of it is taken as a lock is. A lock of a place has a `slot`, and a token of its own: guards take it for a resource of its own. */
export interface Semaphore {
  readonly name: string;
  readonly slots: number;
  /** As Holdfast.acquire. */
  acquire(options?: WithoutMode<AcquireOptions>): Promise<Lock>;
  /** As Holdfast.tryAcquire. */
  tryAcquire(options?: WithoutMode<HoldOptions>): Promise<Lock | null>;
  /** As Holdfast.request. */
  request<T>(body: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  request<T>(
    options: WithoutMode<RequestOptions> & { readonly ifAvailable: true },
    body: (lock: Lock | null) => T | PromiseLike<T>,
  ): Promise<T>;
  request<T>(
    options: WithoutMode<RequestOptions> & { readonly ifAvailable?: false | undefined },
    body: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
}

/** Begins an acquire of one of `slots` places. */
export type BeginPlace = (
  call: "acquire" | "tryAcquire" | "request",
  name: string,
  options: RequestOptions | undefined,
  slots: number,
) => Promise<LockHandle | null>;

export class LockSemaphore implements Semaphore {
  readonly name: string;
  readonly slots: number;
  private readonly begin: BeginPlace;

  constructor(name: string, options: SemaphoreOptions, begin: BeginPlace) {
    checkName("name", name);
    checkOptionNames("semaphore", options);
    checkWhole("slots", options.slots, 1, limits.slotsMax);
    this.name = name;
    this.slots = options.slots;
    this.begin = begin;
  }

  async acquire(options?: WithoutMode<AcquireOptions>): Promise<Lock> {
    return orRefuse(await this.begin("acquire", this.name, options, this.slots));
  }

  tryAcquire(options?: WithoutMode<HoldOptions>): Promise<Lock | null> {
    return this.begin("tryAcquire", this.name, options, this.slots);
  }

  async request<T>(
    optionsOrBody: WithoutMode<RequestOptions> | ((lock: Lock) => T | PromiseLike<T>),
    givenBody?: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T> {
    const [options, body] = splitRequest<WithoutMode<RequestOptions>, (lock: Lock) => T | PromiseLike<T>>(
      optionsOrBody,
      givenBody,
    );
    return await runBody(await this.begin("request", this.name, options, this.slots), body as Body<T>);
  }
}
