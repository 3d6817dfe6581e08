/** All watches of a client: asked for at whoever leads, from where each has come to. */
import type { Refusal, ServerMessage } from "@holdfast/wire";
import { Backoff } from "./backoff.js";
import { assertNever, errorFor, HoldfastError } from "./errors.js";
import type { Clock, Random, Timer } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";
import type { LeaderLink } from "./leader-link.js";
import { Watch } from "./watch.js";

/** Of a node's welcome. */
const feature = "watch";
const retryOptions = { firstMs: 50, maxMs: 1_000 };

export interface WatchesParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly link: LeaderLink;
  readonly hold: ProcessHold;
  /** A number that no other question of this client has. */
  readonly nextId: () => number;
}

export class Watches {
  private readonly parts: WatchesParts;
  private readonly all = new Set<Watch>();
  private readonly byId = new Map<number, Watch>();
  private readonly retries = new Map<Watch, Timer>();
  private readonly backoff: Backoff;

  constructor(parts: WatchesParts) {
    this.parts = parts;
    this.backoff = new Backoff(retryOptions, parts.random);
  }

  /** An abort of `signal` ends it: what waits for the next event rejects with the signal's reason. */
  begin(name: string, isPrefix: boolean, signal: AbortSignal | undefined): Watch {
    const onAbort = (): void => watch.fail(signal?.reason);
    const watch: Watch = new Watch(name, isPrefix, {
      hold: this.parts.hold,
      onEnded: () => {
        // A signal may live as long as the process.
        signal?.removeEventListener("abort", onAbort);
        this.onEnded(watch);
      },
    });
    this.all.add(watch);
    if (signal?.aborted === true) watch.fail(signal.reason);
    else {
      signal?.addEventListener("abort", onAbort, { once: true });
      this.ask(watch);
    }
    return watch;
  }

  /** There is a leader, a new one or the same on another connection: it knows of none. */
  onLeader(): void {
    this.byId.clear();
    for (const watch of this.all) this.ask(watch);
  }

  onMessage(message: Extract<ServerMessage, { readonly kind: "watching" | "changes" }>): void {
    const watch = this.byId.get(message.id);
    if (watch === undefined) return;
    if (message.kind === "changes") watch.onChanges(message.index, message.changes);
    else {
      this.backoff.reset();
      if (message.isGap) watch.onGap(message.index);
    }
  }

  /** False: it is the number of no watch. */
  onRefused(id: number, refusal: Refusal): boolean {
    const watch = this.byId.get(id);
    if (watch === undefined) return false;
    this.byId.delete(id);
    watch.id = null;
    switch (refusal.code) {
      case "not_leader":
        this.parts.link.onNotLeader(refusal.leader);
        break;
      case "no_quorum":
      case "overloaded":
      case "unknown_outcome":
        this.askLater(watch);
        break;
      case "session_gone":
      case "invalid_argument":
      case "incompatible":
      case "unauthorized":
      case "change_refused":
        watch.fail(errorFor(refusal));
        break;
      default:
        assertNever(refusal);
    }
    return true;
  }

  fail(error: HoldfastError): void {
    for (const watch of [...this.all]) watch.fail(error);
  }

  private ask(watch: Watch): void {
    const { link, nextId } = this.parts;
    this.endRetry(watch);
    watch.id = null;
    if (!link.isReady) return;
    if (!link.hasFeature(feature)) {
      watch.fail(new HoldfastError("incompatible", "the leader's release knows no watches"));
      return;
    }
    watch.id = nextId();
    this.byId.set(watch.id, watch);
    const { id, name, isPrefix, seenIndex: after } = watch;
    link.send({ kind: "watch", id, name, isPrefix, after });
  }

  private askLater(watch: Watch): void {
    this.endRetry(watch);
    const timer = this.parts.clock.setTimer(this.backoff.nextMs(), () => this.ask(watch));
    this.retries.set(watch, timer);
  }

  private endRetry(watch: Watch): void {
    this.retries.get(watch)?.cancel();
    this.retries.delete(watch);
  }

  private onEnded(watch: Watch): void {
    this.endRetry(watch);
    if (!this.all.delete(watch) || watch.id === null) return;
    if (this.byId.delete(watch.id)) this.parts.link.send({ kind: "unwatch", id: watch.id });
    watch.id = null;
  }
}
