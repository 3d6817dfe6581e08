/** A task that has sequencers made of its client's locks, presents them while those are held and after, and has the key replaced at times. */
import type { PublicKey } from "@holdfast/client";
import { SequencerError, verifySequencer } from "@holdfast/fence";
import { parseSequencer, sealSequencer, sequencerToSign } from "@holdfast/wire";
import { InvariantError } from "../invariants/invariant-error.js";
import { KeysQuestion, SequencerQuestion } from "../invariants/sequencers.js";
import type { IssuedSequencer, SequencerBook } from "../invariants/sequencers.js";
import type { Random } from "../random.js";
import type { Application } from "./application.js";
import { codeOf } from "./results.js";

export interface SequencerTaskParts {
  readonly sequencers: SequencerBook;
  /** Told at once: the task's end is awaited only later. */
  readonly onDefect: (error: unknown) => void;
}

interface Kept extends IssuedSequencer {
  readonly text: string;
}

/** Old ones are presented too, but not for ever. */
const keptMax = 12;

export class SequencerTask {
  readonly #application: Application;
  readonly #random: Random;
  readonly #parts: SequencerTaskParts;
  readonly #rotationChance: number;
  readonly #pauseMsMax: number;
  #kept: readonly Kept[] = [];
  #isStopped = false;

  constructor(application: Application, random: Random, parts: SequencerTaskParts) {
    this.#application = application;
    this.#random = random;
    this.#parts = parts;
    this.#rotationChance = random.pick([0, 0.02, 0.4]);
    this.#pauseMsMax = random.logUniform(1, 30) * application.parts.workload.pauseMsMax;
  }

  async run(): Promise<void> {
    while (!this.#isStopped && !this.#application.isDraining) {
      await this.#application.sleep(this.#random.logUniform(1, Math.max(2, this.#pauseMsMax)));
      try {
        await this.#act();
      } catch (error) {
        this.#parts.onDefect(error);
        return;
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #act(): Promise<void> {
    if (this.#random.chance(this.#rotationChance)) await this.#rotate();
    if (this.#random.chance(0.5)) await this.#issue();
    const [kept] = this.#random.shuffle(this.#kept);
    if (kept === undefined) return;
    if (this.#random.chance(0.2)) await this.#verify(kept);
    else await this.#check(kept, this.#random.chance(0.1));
  }

  /** Null, and counted: the cluster, or the library, refused. */
  async #ask<T>(what: string, promise: Promise<T>): Promise<T | null> {
    const { calls, counts } = this.#application.parts;
    try {
      return await calls.follow(what, promise);
    } catch (error) {
      counts.add(`${what}: ${codeOf(error)}`);
      return null;
    }
  }

  async #issue(): Promise<void> {
    const { counts } = this.#application.parts;
    const [held] = this.#random.shuffle([...this.#application.held.values()]);
    if (held === undefined) return;
    const grant = this.#random.pick(held.lock.grants);
    const text = await this.#ask("sequencer", held.lock.sequencer(grant.name));
    if (text === null) return;
    counts.add("sequencer: made");
    const kept = { ...grant, keyId: parseSequencer(text).keyId, text };
    this.#kept = [kept, ...this.#kept].slice(0, keptMax);
    await this.#verify(kept);
  }

  /** With the cluster's keys, as a resource does. */
  async #verify(kept: Kept): Promise<void> {
    const { counts } = this.#application.parts;
    const keysQuestion = new KeysQuestion(this.#parts.sequencers);
    const question = new SequencerQuestion(this.#parts.sequencers, kept);
    const keys = await this.#ask("publicKeys", this.#application.holdfast.publicKeys());
    if (keys === null) return;
    keysQuestion.judge(keys);
    const verdict = verdictOf(kept.text, keys);
    counts.add(`sequencer: ${verdict ?? "verified"}`);
    if (verdict !== null) question.judge({ isCurrent: false, reason: verdict, claim: null, currentToken: null });
  }

  async #check(kept: Kept, isForged: boolean): Promise<void> {
    const question = new SequencerQuestion(this.#parts.sequencers, kept);
    const text = isForged ? withAnotherToken(kept.text) : kept.text;
    const check = await this.#ask("check", this.#application.holdfast.check(text));
    if (check === null) return;
    this.#application.parts.counts.add(`check: ${check.reason ?? "current"}`);
    if (isForged) question.judgeForged(check);
    else question.judge(check);
  }

  async #rotate(): Promise<void> {
    const { counts } = this.#application.parts;
    const id = await this.#ask("rotateKey", this.#application.holdfast.rotateKey());
    if (id === null) return;
    counts.add("rotateKey: answered");
    if (!this.#parts.sequencers.hasKey(id)) throw new InvariantError("sequencers", `no entry has set the key ${id}`);
  }
}

/** Null: one of these keys signed it. */
function verdictOf(text: string, keys: readonly PublicKey[]): SequencerError["reason"] | null {
  try {
    verifySequencer(text, keys);
    return null;
  } catch (error) {
    if (error instanceof SequencerError) return error.reason;
    throw error;
  }
}

/** A far later token, under the old signature. */
function withAnotherToken(text: string): string {
  const { keyId, signature, ...claim } = parseSequencer(text);
  return sealSequencer(sequencerToSign(keyId, { ...claim, token: claim.token + 1_000_000 }), signature);
}
