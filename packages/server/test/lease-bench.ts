/** A lease keeper with everything it needs, by hand. */
import { LockMachine } from "@holdfast/lock";
import type { Command } from "@holdfast/lock";
import { LeaseKeeper } from "../src/lease-keeper.js";

/**
 * A leader's lease keeper over a real lock machine and a log of its own: proposals wait in `tail` until `commit`, rounds wait in
 * `rounds` until `confirm`. Time passes in `pass` only.
 */
export class LeaseBench {
  machine = new LockMachine();
  index = 0;
  now = 1_000_000;
  readonly tail: Command[] = [];
  readonly rounds: { ready: () => void; failed: () => void }[] = [];
  readonly acknowledged: string[] = [];
  readonly ended: string[] = [];
  refuses = false;
  keeper: LeaseKeeper = this.newKeeper();

  newKeeper(): LeaseKeeper {
    return new LeaseKeeper({
      propose: (command, onRefused) => {
        if (this.refuses) onRefused();
        else this.tail.push(command);
      },
      gather: (ready, failed) => this.rounds.push({ ready, failed }),
      gatherExpiry: (ready, failed) => this.rounds.push({ ready, failed }),
      acknowledge: (session, number) => this.acknowledged.push(`${session}:${number}`),
    });
  }

  /** Another leader, which has applied all that was committed, begins its term; `kept` proposals of the old one survive in its log. */
  changeLeader(kept = 0): void {
    this.keeper.stop();
    const inherited = this.tail.splice(0).slice(0, kept);
    this.rounds.length = 0;
    this.keeper = this.newKeeper();
    for (const command of inherited) this.apply(command);
    this.index += 1;
    this.keeper.start(this.machine, this.now);
  }

  apply(command: Command): void {
    this.index += 1;
    const effects = this.machine.apply(this.index, command);
    for (const effect of effects)
      if (effect.kind === "sessionEnded") this.ended.push(`${effect.session}:${effect.reason}`);
    this.keeper.onEffects(effects, this.now);
  }

  open(ttlMs: number): number {
    this.apply({ kind: "openSession", key: (this.index + 1).toString(16).padStart(32, "0"), ttlMs, info: "" });
    return this.index;
  }

  acquire(session: number, request: number, name: string): void {
    const asked = {
      names: [name],
      mode: "exclusive",
      slots: 0,
      wait: true,
      lockDelayMs: 0,
      maxHoldMs: 0,
      info: "",
    } as const;
    this.apply({ kind: "acquire", session, request, settled: 0, seen: [], ...asked });
  }

  commit(): void {
    for (const command of this.tail.splice(0)) this.apply(command);
    this.keeper.flush();
  }

  confirm(): void {
    for (const round of this.rounds.splice(0)) round.ready();
    this.keeper.flush();
  }

  /** Time passes in steps as the host would take them: a decision at each deadline; everything commits and confirms at once. */
  pass(ms: number, settle: () => void = () => this.settle()): void {
    const end = this.now + ms;
    for (;;) {
      const due = Math.max(this.keeper.nextDeadlineMs(), this.now);
      if (due > end) break;
      this.now = due;
      this.keeper.decide(this.now);
      this.keeper.flush();
      settle();
    }
    this.now = end;
  }

  settle(): void {
    while (this.tail.length > 0 || this.rounds.length > 0) {
      this.commit();
      this.confirm();
      this.keeper.decide(this.now);
    }
  }

  keepalive(session: number, number: number): boolean {
    const known = this.keeper.onKeepalive(session, number, this.now);
    this.keeper.flush();
    return known;
  }

  proposed(): string {
    return this.tail.map((command) => command.kind + ("eighths" in command ? `+${command.eighths}` : "")).join(" ");
  }
}

export function served(): LeaseBench {
  const bench = new LeaseBench();
  bench.keeper.start(bench.machine, bench.now);
  return bench;
}
