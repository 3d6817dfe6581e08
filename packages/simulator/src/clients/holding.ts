/** What a holder does with its lock: works for a while, looks at it, writes to what it protects (in time, late, or too late), gives it back. */
import type { Grant } from "@holdfast/checker";
import type { Random } from "../random.js";
import type { Application } from "./application.js";
import type { HeldLock } from "./held-lock.js";
import { codeOf, releasedAs } from "./results.js";
import type { Trait } from "./workload.js";

type Does = (trait: Trait) => boolean;

export class Holding {
  readonly #application: Application;
  readonly #random: Random;
  readonly #held: HeldLock;
  readonly #does: Does;
  readonly #isManual: boolean;

  constructor(application: Application, random: Random, held: HeldLock, isManual: boolean) {
    this.#application = application;
    this.#random = random;
    this.#held = held;
    this.#isManual = isManual;
    this.#does = (trait) => random.chance(application.parts.workload.chances[trait]);
    held.whenInJeopardy(() => this.#lookAtDeadline());
  }

  /** Until it is lost, or long enough held. */
  async work(): Promise<void> {
    const held = this.#held;
    let leftMs = this.#drawHoldMs();
    do {
      const stepMs = Math.min(leftMs, this.#random.logUniform(1, Math.max(2, leftMs)));
      leftMs -= stepMs;
      await this.#act();
      await this.#application.sleep(stepMs, held);
    } while (leftMs > 0 && !this.#application.isDraining && !held.isLost);
    if (held.isLost && this.#does("staleWrite")) {
      this.#application.parts.counts.add("write after the loss");
      this.#operateSoon(this.#random.logUniform(0.1, 1_000));
    } else if (this.#does("lateWrite")) {
      this.#operateSoon(this.#random.logUniform(0.1, 1_000));
    }
  }

  async release(): Promise<void> {
    const held = this.#held;
    if (this.#does("ownLook")) this.#look();
    if (held.isLost && !this.#does("releasedWhenLost")) {
      this.#application.giveBack(held);
      return;
    }
    const isTwice = this.#does("releasedTwice");
    const first = this.#releaseOnce(this.#does("afterMs") ? this.#random.between(1, 500) : 0);
    if (!isTwice) return first;
    const isAtOnce = this.#random.chance(0.5);
    if (!isAtOnce) await first;
    await Promise.all([first, this.#releaseOnce(0)]);
    this.#application.parts.counts.add("released twice");
  }

  #drawHoldMs(): number {
    const { holdMsMax, longHoldMsMin, ttlMs } = this.#application.parts.workload;
    return this.#does("longHold")
      ? this.#random.logUniform(longHoldMsMin, 1.5 * ttlMs)
      : this.#random.logUniform(0.5, holdMsMax);
  }

  async #releaseOnce(afterMs: number): Promise<void> {
    const application = this.#application;
    const { call, lock } = this.#held;
    const release = application.begin({ kind: "release", of: call });
    application.giveBack(this.#held);
    try {
      application.end(release, releasedAs(await lock.release(afterMs === 0 ? {} : { afterMs })));
    } catch (error) {
      application.end(release, { kind: "failed", code: codeOf(error) });
    }
  }

  async #act(): Promise<void> {
    if (this.#does("ownLook")) this.#look();
    if (this.#isManual && this.#random.chance(0.5)) await this.#renew();
    if (this.#does("guarded")) this.#operateSoon(this.#does("lateWrite") ? this.#random.logUniform(0.1, 500) : 0);
    if (this.#does("twin") && this.#held.lock.mode === "exclusive") await this.#changeTwin();
  }

  #look(): void {
    const { counts } = this.#application.parts;
    const held = this.#held;
    const state = held.check();
    counts.add(`looked: ${state}`);
    const leftMs = held.lock.remainingMs();
    if (leftMs > 0 && leftMs < 5) counts.add("looked within 5 ms of the deadline");
    try {
      held.lock.assertHeld(this.#random.chance(0.5) ? 0 : this.#random.logUniform(1, 10_000));
    } catch (error) {
      counts.add(`assertHeld: ${codeOf(error)}`);
      held.check();
    }
  }

  /** Or a little before, or after it: does the library still call it held? */
  #lookAtDeadline(): void {
    if (!this.#does("ownLook")) return;
    const { counts, process } = this.#application.parts;
    const held = this.#held;
    process.setTimer(held.lock.remainingMs() + this.#random.between(-100, 900), () => {
      if (!held.isGivenBack) counts.add(`looked at the deadline: ${held.isLost ? "lost" : held.check()}`);
    });
  }

  async #renew(): Promise<void> {
    const { calls, counts } = this.#application.parts;
    try {
      await calls.follow(`renew of call ${this.#held.call}`, this.#held.lock.renew());
      counts.add("renewed by hand");
    } catch (error) {
      counts.add(`renew: ${codeOf(error)}`);
    }
  }

  /** Leaves after a while, whatever the lock's state is then: nobody awaits the answer. */
  #operateSoon(delayMs: number): void {
    const { process } = this.#application.parts;
    const grant = this.#random.pick(this.#held.lock.grants);
    if (delayMs === 0) this.#operate(grant);
    else process.setTimer(delayMs, () => this.#operate(grant));
  }

  #operate({ name, slot, token }: Grant): void {
    const { id, parts } = this.#application;
    const { counts, process, resource } = parts;
    const held = this.#held;
    const isLate = held.isLost || held.isGivenBack;
    const operation = { client: id, resource: slot === null ? name : `${name}#${slot}`, name, slot, token };
    resource.operate(process, operation, (isAccepted) => {
      if (isLate) counts.add(isAccepted ? "late write accepted" : "late write refused");
      else if (!isAccepted) counts.add("write overtaken on its way");
    });
  }

  /** Read, think, write: what a lock is for. Only as long as the library says that it is held. */
  async #changeTwin(): Promise<void> {
    const application = this.#application;
    const { process, resource } = application.parts;
    const { name, token } = this.#random.pick(this.#held.lock.grants);
    const base = await new Promise<number>((resolve) => resource.readTwin(process, name, resolve));
    await application.sleep(this.#random.logUniform(0.1, 20), this.#held);
    if (this.#held.isLost || this.#held.isGivenBack) return;
    await new Promise<void>((resolve) => resource.writeTwin(process, name, base, token, resolve));
  }
}
