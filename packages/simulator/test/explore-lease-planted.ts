/** Lease keepers and a lock machine with a bug each, made of the real ones from outside. */
import type { Command, Effect, SessionId } from "@holdfast/lock";
import { LockMachine } from "@holdfast/lock";
import { LeaseKeeper } from "@holdfast/server/parts";
import type { LeaseKeeperHost } from "@holdfast/server/parts";
import { unitMs } from "../src/explore/lease/units.js";

/** Acknowledges whatever a round has confirmed, suspect or not. */
export class Unsuspecting extends LeaseKeeper {
  readonly #host: LeaseKeeperHost;

  constructor(host: LeaseKeeperHost) {
    super(host);
    this.#host = host;
  }

  override onKeepalive(session: SessionId, number: number, nowMs: number): boolean {
    this.#host.gather(
      () => this.#host.acknowledge(session, number),
      () => {},
    );
    return super.onKeepalive(session, number, nowMs);
  }
}

/** Holds back an acknowledgement only for what is applied, not for what is proposed. */
export class LiteralApplied extends LeaseKeeper {
  applied = 0;
  readonly #host: LeaseKeeperHost;

  constructor(host: LeaseKeeperHost) {
    super(host);
    this.#host = host;
  }

  override start(source: Parameters<LeaseKeeper["start"]>[0], nowMs: number): void {
    super.start(source, nowMs);
    for (const { silence } of source.sessions()) this.applied = silence;
  }

  override onEffects(effects: readonly Effect[], nowMs: number): void {
    super.onEffects(effects, nowMs);
    for (const effect of effects) if (effect.kind === "silence") this.applied = effect.count;
  }

  override onKeepalive(session: SessionId, number: number, nowMs: number): boolean {
    this.#host.gather(
      () => {
        if (this.applied === 0) this.#host.acknowledge(session, number);
      },
      () => {},
    );
    return super.onKeepalive(session, number, nowMs);
  }
}

/** The mark of old: silence is counted only by a leader that has served for TTL/2. */
export class MarksAtHalf extends LeaseKeeper {
  /** When this leader began. */
  heardAt = 0;

  override start(source: Parameters<LeaseKeeper["start"]>[0], nowMs: number): void {
    super.start(source, nowMs);
    this.heardAt = nowMs;
  }

  override decide(nowMs: number): void {
    if (nowMs > this.heardAt + 4 * unitMs) super.decide(nowMs);
  }

  override nextDeadlineMs(): number {
    return Math.max(super.nextDeadlineMs(), this.heardAt + 5 * unitMs);
  }
}

/** Proposes an expiry as soon as the eighths are counted: its round is one in name. */
export function withoutRoundForExpiries(host: LeaseKeeperHost): LeaseKeeper {
  let isDeciding = false;
  class Hasty extends LeaseKeeper {
    override decide(nowMs: number): void {
      isDeciding = true;
      super.decide(nowMs);
      isDeciding = false;
    }
  }
  return new Hasty({
    propose: (command, onRefused) => host.propose(command, onRefused),
    gather: (onReady, onFailed) => host.gather(onReady, onFailed),
    gatherExpiry: (onReady, onFailed) => (isDeciding ? onReady() : host.gatherExpiry(onReady, onFailed)),
    acknowledge: (session, number) => host.acknowledge(session, number),
  });
}

/** Believes that it leads. */
export function withoutRounds(host: LeaseKeeperHost): LeaseKeeper {
  return new LeaseKeeper({
    propose: (command, onRefused) => host.propose(command, onRefused),
    gather: (onReady) => onReady(),
    gatherExpiry: (onReady) => onReady(),
    acknowledge: (session, number) => host.acknowledge(session, number),
  });
}

/** Ends whom it is told to end, renewed or not. */
export class Unconditional extends LockMachine {
  override apply(index: number, command: Command): Effect[] {
    const [session] = this.sessions();
    const isSpared = command.kind === "expireSessions" && session?.silence === 0;
    if (!isSpared) return super.apply(index, command);
    const request = { session: session.id, request: 2, settled: 1, seen: [] };
    return super.apply(index, { kind: "closeSession", ...request });
  }
}

/** Ignores every third keepalive, by a count that no key shows. */
export class Secretive extends LeaseKeeper {
  #heard = 0;

  override onKeepalive(session: SessionId, number: number, nowMs: number): boolean {
    this.#heard += 1;
    return this.#heard % 3 === 0 || super.onKeepalive(session, number, nowMs);
  }
}
