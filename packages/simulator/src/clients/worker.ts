/** One task of an application: does one thing after another, as the workload has it, until it is told to stop. */
import type { CallResult } from "@holdfast/checker";
import type { AcquireOptions, HoldOptions, Lock } from "@holdfast/client";
import type { Random } from "../random.js";
import type { Application } from "./application.js";
import { infoFor } from "./client-tap.js";
import type { HeldLock } from "./held-lock.js";
import { Holding } from "./holding.js";
import { Abort, acquireFailure, codeOf, inspectedAs, refusedBy } from "./results.js";
import { pickAction } from "./workload.js";
import type { Action, Trait } from "./workload.js";

interface Asked {
  readonly call: number;
  readonly names: readonly string[];
  readonly hold: HoldOptions;
  readonly maxHoldMs: number;
  readonly isManual: boolean;
}

export class Worker {
  readonly #application: Application;
  readonly #random: Random;
  readonly #leftAlone: Promise<void>[] = [];

  constructor(application: Application, random: Random) {
    this.#application = application;
    this.#random = random;
  }

  async run(): Promise<void> {
    const { workload } = this.#application.parts;
    for (let count = 0; count < workload.actionsMax && !this.#application.isDraining; count += 1) {
      await this.#act(pickAction(this.#random, workload.weights));
      await this.#application.sleep(this.#random.logUniform(0.5, workload.pauseMsMax));
    }
    await Promise.all(this.#leftAlone);
  }

  #act(action: Action): Promise<void> {
    const { waitMsMax } = this.#application.parts.workload;
    switch (action) {
      case "acquire":
        return this.#acquire({ waitMs: this.#random.logUniform(1, waitMsMax) });
      case "acquireForever":
        return this.#acquire({ waitMs: Number.POSITIVE_INFINITY });
      case "acquireAborted":
        return this.#acquireAborted();
      case "acquireAtOnce":
        return this.#acquire({ waitMs: 0 });
      case "tryAcquire":
        return this.#tryAcquire();
      case "request":
        return this.#request(false);
      case "requestIfAvailable":
        return this.#request(true);
      case "inspect":
        return this.#inspect();
      case "forceRelease":
        return this.#forceRelease();
      case "list":
      case "sessions":
      case "status":
      case "transfer":
        return this.#ask(action);
      default:
        return action satisfies never;
    }
  }

  async #acquire(options: { readonly waitMs: number; readonly signal?: AbortSignal }): Promise<void> {
    const wait = options.waitMs > 0;
    const asked = this.#beginAcquire(wait);
    const held = await this.#await(
      asked,
      wait,
      this.#application.holdfast.acquire(asked.names, { ...asked.hold, ...options }),
    );
    if (held !== null) await this.#hold(held, asked.isManual);
  }

  async #acquireAborted(): Promise<void> {
    const { counts, process, workload } = this.#application.parts;
    const controller = new AbortController();
    const timer = process.setTimer(this.#random.logUniform(0.1, workload.waitMsMax / 4), () => {
      counts.add("abort");
      controller.abort(new Abort());
    });
    await this.#acquire({ waitMs: workload.waitMsMax, signal: controller.signal });
    timer.cancel();
  }

  async #tryAcquire(): Promise<void> {
    const asked = this.#beginAcquire(false);
    const held = await this.#await(asked, false, this.#application.holdfast.tryAcquire(asked.names, asked.hold));
    if (held !== null) await this.#hold(held, asked.isManual);
  }

  /** Null: it got none, and the history knows. */
  async #await(asked: Asked, wait: boolean, answer: Promise<Lock | null>): Promise<HeldLock | null> {
    const application = this.#application;
    const { call, maxHoldMs } = asked;
    try {
      const lock = await answer;
      if (lock !== null) return application.take(call, lock, maxHoldMs);
      application.end(call, this.#refusal(call));
    } catch (error) {
      this.#onFailure(call, error, wait);
    }
    return null;
  }

  async #hold(held: HeldLock, isManual: boolean): Promise<void> {
    const { counts, workload } = this.#application.parts;
    const holding = new Holding(this.#application, this.#random, held, isManual);
    await holding.work();
    if (!this.#random.chance(workload.chances.leftAlone)) return holding.release();
    counts.add("left alone");
    const release = this.#releaseLate(holding, held);
    // Awaited at the end; until then a failure waits too.
    release.catch(() => undefined);
    this.#leftAlone.push(release);
  }

  /** Beside its next work. */
  async #releaseLate(holding: Holding, held: HeldLock): Promise<void> {
    await this.#application.sleep(this.#random.logUniform(1, 2 * this.#application.parts.workload.ttlMs), held);
    await holding.release();
  }

  /** The library calls the body, and releases when that is through. */
  async #request(ifAvailable: boolean): Promise<void> {
    const application = this.#application;
    const { counts, workload } = application.parts;
    const asked = this.#beginAcquire(!ifAvailable);
    const state: { held: HeldLock | null; release: number | null } = { held: null, release: null };
    const body = async (lock: Lock | null): Promise<void> => {
      if (lock === null) {
        application.end(asked.call, this.#refusal(asked.call));
        return;
      }
      state.held = application.take(asked.call, lock, asked.maxHoldMs);
      await new Holding(application, this.#random, state.held, asked.isManual).work();
      state.release = application.begin({ kind: "release", of: asked.call });
      application.giveBack(state.held);
      if (this.#random.chance(workload.chances.bodyThrows)) throw new Abort();
    };
    const wait = { waitMs: this.#random.logUniform(1, workload.waitMsMax) };
    try {
      if (ifAvailable) await application.holdfast.request(asked.names, { ...asked.hold, ifAvailable }, body);
      else await application.holdfast.request(asked.names, { ...asked.hold, ...wait }, body);
    } catch (error) {
      if (state.release === null) {
        this.#onFailure(asked.call, error, !ifAvailable);
        return;
      }
      if (!(error instanceof Abort)) counts.add(`request: ${codeOf(error)}`);
    }
    const { held, release } = state;
    if (held === null || release === null) return;
    const how = held.lock.state === "released" ? "released" : "alreadyLost";
    application.end(release, { kind: "released", how });
  }

  async #inspect(): Promise<void> {
    const application = this.#application;
    const name = this.#random.pick(application.parts.workload.names);
    const call = application.begin({ kind: "inspect", name });
    try {
      const view = await application.holdfast.inspect(name);
      const [holder] = view?.holders ?? [];
      if (holder !== undefined) application.seenTokens.set(name, holder.token);
      application.end(call, inspectedAs(view));
    } catch (error) {
      // A read has no effect.
      application.end(call, { kind: "failed", code: codeOf(error) });
    }
  }

  async #forceRelease(): Promise<void> {
    const application = this.#application;
    const [name, token] = this.#random.shuffle([...application.seenTokens])[0] ?? [];
    if (name === undefined || token === undefined) return this.#inspect();
    const call = application.begin({ kind: "forceRelease", name, token });
    const options = this.#random.chance(0.3) ? { lockDelayMs: this.#random.between(1, 2_000) } : {};
    try {
      const { ended } = await application.holdfast.forceRelease(name, token, options);
      application.parts.counts.add(ended > 0 ? "force: ended holds" : "force: ended nothing");
      application.end(call, { kind: "forced", ended });
    } catch (error) {
      application.end(call, { kind: "unknown", code: codeOf(error) });
    }
  }

  /** What histories have no word for. */
  async #ask(question: "list" | "sessions" | "status" | "transfer"): Promise<void> {
    const { holdfast, parts } = this.#application;
    const { calls, counts } = parts;
    try {
      await calls.follow<unknown>(question, holdfast[question]());
      counts.add(`${question}: answered`);
    } catch (error) {
      counts.add(`${question}: ${codeOf(error)}`);
    }
  }

  #refusal(call: number): CallResult {
    return refusedBy(this.#application.parts.tap.lastOutcomeOf(call));
  }

  #onFailure(call: number, error: unknown, wait: boolean): void {
    const { counts, tap } = this.#application.parts;
    const last = tap.lastOutcomeOf(call)?.kind ?? null;
    if (error instanceof Abort && last === "granted") counts.add("abort met a grant");
    this.#application.end(call, acquireFailure(error, wait, tap.wasSent(call)));
  }

  /** Begins the call of an acquire. */
  #beginAcquire(wait: boolean): Asked {
    const { workload } = this.#application.parts;
    const random = this.#random;
    const does = (trait: Trait): boolean => random.chance(workload.chances[trait]);
    const count = does("several") ? Math.min(random.between(2, 3), workload.names.length) : 1;
    const names = random.shuffle(workload.names).slice(0, count);
    const mode = does("shared") ? "shared" : "exclusive";
    const maxHoldMs = does("maxHold") ? random.between(500, Math.max(600, workload.ttlMs)) : 0;
    const isManual = does("manual");
    const call = this.#application.begin({ kind: "acquire", names, mode, slots: 0, wait, maxHoldMs });
    const hold: AcquireOptions = {
      mode,
      info: infoFor(call),
      ...(maxHoldMs > 0 ? { maxHoldMs } : {}),
      ...(does("lockDelay") ? { lockDelayMs: random.between(1, 2_000) } : {}),
      ...(does("ownTtl") ? { ttlMs: 2 * workload.ttlMs } : {}),
      ...(does("stopOnJeopardy") ? { stopOn: "jeopardy" } : {}),
      ...(isManual ? { renew: "manual" } : {}),
    };
    return { call, names, hold, maxHoldMs, isManual };
  }
}
