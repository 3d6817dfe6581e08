/**
 * A client without the library: sends hand-made frames, in the wrong order, twice, late, at the wrong node, over two connections that both
 * resume one session, and now and then bytes that mean nothing. What it is told goes into the history as any client's.
 */
import type { Transport } from "@holdfast/client";
import { encodeClientFrame } from "@holdfast/wire";
import type { ClientMessage } from "@holdfast/wire";
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Cancellable, Scheduler } from "../scheduler.js";
import { CallBook } from "./call-book.js";
import type { OpenCall } from "./call-book.js";
import type { Counts } from "./counts.js";
import { RawConnections } from "./raw-connections.js";
import type { RawConnection } from "./raw-connections.js";
import { RawSession } from "./raw-session.js";
import type { RawAsked, RawCommand } from "./raw-session.js";
import { RawSessions } from "./raw-sessions.js";
import type { Resource } from "./resource.js";
import type { RunningClient } from "./simulated-client.js";
import type { CallNumbers, HistorySink, UntimedEvent } from "./sink.js";

export interface RawClientOptions {
  readonly id: string;
  readonly endpoints: readonly string[];
  /** Locks, and semaphores with their places. */
  readonly names: readonly string[];
  readonly semaphores: readonly { readonly name: string; readonly slots: number }[];
  readonly ttlMs: number;
  /** From one action to the next, at most. */
  readonly pauseMsMax: number;
}

export interface RawClientParts {
  readonly process: SimulatedProcess;
  readonly scheduler: Scheduler;
  readonly transport: Transport;
  readonly random: Random;
  readonly sink: HistorySink;
  readonly numbers: CallNumbers;
  readonly resource: Resource;
  readonly counts: Counts;
  readonly onDefect: (error: unknown) => void;
}

const acquiresMax = 12;
const reorderMsMax = 30;
/** Between two steps of one that is to end. */
const drainPauseMsMax = 2_000;

export class RawClient implements RunningClient {
  readonly id: string;
  readonly #options: RawClientOptions;
  readonly #parts: RawClientParts;
  readonly #calls: CallBook;
  readonly #connections: RawConnections;
  readonly #sessions: RawSessions;
  #isDraining = false;
  #timer: Cancellable | null = null;
  #isOver = false;
  #keepaliveDueMs = 0;

  constructor(options: RawClientOptions, parts: RawClientParts) {
    this.id = options.id;
    this.#options = options;
    const { process, scheduler, transport, random, numbers, counts } = parts;
    const sink = { emit: (event: UntimedEvent): void => (process.isKilled ? undefined : parts.sink.emit(event)) };
    this.#parts = { ...parts, sink };
    this.#calls = new CallBook(options.id, { scheduler, sink, numbers });
    this.#connections = new RawConnections(
      options.id,
      options.endpoints,
      { process, transport, random, counts },
      { onMessage: (connection, message) => this.#sessions.onMessage(connection, message) },
    );
    this.#sessions = new RawSessions(
      options.id,
      { sink, counts },
      { sendLater: (session, command) => this.#sendLater(session, command) },
    );
  }

  start(): void {
    this.#parts.process.deliver(() => {
      this.#connections.open();
      this.#tick();
    });
  }

  beginDrain(): void {
    this.#isDraining = true;
    this.#timer?.cancel();
    if (!this.#parts.process.isKilled) this.#parts.process.deliver(() => this.#tick());
  }

  openCalls(): readonly OpenCall[] {
    return this.#parts.process.isKilled ? [] : this.#calls.open();
  }

  get isIdle(): boolean {
    return this.#parts.process.isKilled || (this.#isOver && this.#calls.isEmpty);
  }

  get isHolding(): boolean {
    return false;
  }

  kill(): void {
    this.#parts.process.kill();
  }

  describe(): string {
    const session = this.#sessions.newest;
    const open = this.openCalls().map(({ description, ageMs }) => `${description} for ${ageMs.toFixed(0)} ms`);
    const stage = this.#parts.process.isKilled
      ? "dead"
      : this.#isOver
        ? "over"
        : this.#isDraining
          ? "draining"
          : "working";
    return `${this.id} (raw) ${stage}; session ${session?.id ?? "none"}; open: ${open.join("; ") || "nothing"}`;
  }

  #tick(): void {
    if (this.#isOver) return;
    this.#act();
    const { process, random } = this.#parts;
    const pauseMsMax = this.#isDraining
      ? Math.min(this.#options.pauseMsMax, drainPauseMsMax)
      : this.#options.pauseMsMax;
    this.#timer = process.setTimer(random.logUniform(1, pauseMsMax), () => this.#tick());
  }

  #act(): void {
    const { random } = this.#parts;
    const session = this.#currentSession();
    if (session === null) return;
    if (session.id === 0) {
      this.#sendAnywhere({ kind: "command", payload: session.opening }, () => {
        this.#parts.sink.emit({ kind: "openSent", client: this.id, key: session.key });
      });
      return;
    }
    this.#keepResumed(session);
    this.#keepAlive(session);
    const { unanswered } = session;
    if (unanswered.length > 0 && random.chance(0.5)) this.#sendCommand(session, random.pick(unanswered));
    if (this.#isDraining) this.#drain(session);
    else this.#doSomething(session);
    if (random.chance(0.1)) this.#misbehave(session);
  }

  /** Null: there is nothing to do any more. */
  #currentSession(): RawSession | null {
    const former = this.#sessions.newest;
    if (former !== null && !former.isOver) {
      // One that isn't open has no calls to end.
      if (!this.#isDraining || former.id !== 0) return former;
    }
    if (this.#isDraining) {
      this.#isOver = true;
      this.#connections.close();
      return null;
    }
    const { random, scheduler, sink, counts } = this.#parts;
    const ttlMs = random.chance(0.8) ? this.#options.ttlMs : Math.max(500, Math.round(this.#options.ttlMs / 2));
    const parts = { client: this.id, random, scheduler, sink, calls: this.#calls, counts };
    return this.#sessions.add(new RawSession(ttlMs, parts));
  }

  #doSomething(session: RawSession): void {
    const { random, counts } = this.#parts;
    if (session.isClosing) return;
    const held = session.acquiresIn("held");
    const asked = session.acquiresIn("asked");
    const busy = held.length + asked.length;
    const draw = random.integer(20);
    if (draw < 6 && busy < acquiresMax) this.#sendLater(session, session.acquire(this.#drawAsked()));
    else if (draw < 10 && held.length > 0) {
      const afterMs = random.chance(0.1) ? random.between(1, 500) : 0;
      this.#sendLater(session, session.release(random.pick(held), afterMs));
    } else if (draw < 12 && asked.length > 0) this.#sendLater(session, session.cancel(random.pick(asked)));
    else if (draw < 13 && held.length > 0) this.#sendLater(session, session.cancel(random.pick(held)));
    else if (draw < 14 && busy > 0) this.#sendLater(session, session.setInfo(random.pick([...held, ...asked])));
    else if (draw < 16 && held.length > 0) this.#write(session);
    else if (draw < 17 && random.chance(0.05)) {
      counts.add("raw: session closed by hand");
      this.#sendLater(session, session.close());
    }
  }

  #drain(session: RawSession): void {
    const [held] = session.acquiresIn("held");
    const [asked] = session.acquiresIn("asked");
    if (held !== undefined) this.#sendLater(session, session.release(held, 0));
    else if (asked !== undefined) this.#sendLater(session, session.cancel(asked));
    else if (!session.isClosing) this.#sendLater(session, session.close());
  }

  #drawAsked(): RawAsked {
    const { random } = this.#parts;
    const { names, semaphores } = this.#options;
    const common = {
      wait: random.chance(0.7),
      lockDelayMs: random.chance(0.1) ? random.between(1, 1_000) : 0,
      maxHoldMs: random.chance(0.2) ? random.between(20, 2_000) : 0,
    };
    if (semaphores.length > 0 && random.chance(0.5)) {
      const { name, slots } = random.pick(semaphores);
      return { names: [name], mode: "slot", slots: random.chance(0.05) ? slots + 1 : slots, ...common };
    }
    const count = random.chance(0.2) ? Math.min(3, names.length) : 1;
    const mode = random.chance(0.4) ? "shared" : "exclusive";
    return { names: random.shuffle(names).slice(0, count), mode, slots: 0, ...common };
  }

  #write(session: RawSession): void {
    const { random, process, resource } = this.#parts;
    const acquire = random.pick(session.acquiresIn("held"));
    const { name, slot, token } = random.pick(acquire.grants);
    const operation = { client: this.id, resource: slot === null ? name : `${name}#${slot}`, name, slot, token };
    process.setTimer(random.logUniform(0.1, 2_000), () => resource.operate(process, operation, () => undefined));
  }

  #keepResumed(session: RawSession): void {
    const { random, counts } = this.#parts;
    for (const connection of this.#connections.leaders) {
      if (connection.sessions.has(session.id) || !random.chance(0.5)) continue;
      counts.add("raw: resume");
      this.#connections.send(connection, [{ kind: "resume", session: session.id, key: session.key }]);
    }
  }

  #keepAlive(session: RawSession): void {
    const { process, random } = this.#parts;
    const now = process.monotonicMs();
    if (now < this.#keepaliveDueMs) return;
    // Now and then it comes too late.
    this.#keepaliveDueMs = now + session.ttlMs * (random.chance(0.03) ? 1.5 : 0.3 * random.fraction());
    session.lastKeepalive += 1;
    const { lastKeepalive } = session;
    const number = random.chance(0.9) ? lastKeepalive : random.between(1, lastKeepalive);
    this.#sendAnywhere({ kind: "keepalive", session: session.id, number }, () => {
      this.#parts.sink.emit({ kind: "keepaliveSent", client: this.id, session: session.id, number });
    });
  }

  #misbehave(session: RawSession): void {
    const { random, counts } = this.#parts;
    const draw = random.integer(7);
    if (draw === 6) this.#flood(session);
    else if (draw === 0) this.#throwGarbage(session);
    else if (draw === 1) this.#resumeWithWrongKey(session);
    else if (draw === 2) {
      const [connection] = random.shuffle(this.#connections.all);
      if (connection !== undefined) this.#connections.redial(connection);
    } else if (draw === 3) {
      // A second owner, or the same once more.
      for (const connection of this.#connections.welcome) {
        this.#connections.send(connection, [{ kind: "resume", session: session.id, key: session.key }]);
      }
    } else if (draw === 4) {
      const old = random.pick([session, ...this.#sessions.former]);
      const kept = [...old.commands.values()];
      if (kept.length === 0) return;
      counts.add("raw: late duplicate");
      this.#sendCommand(old, random.pick(kept));
    } else if (this.#sessions.former.length > 0 && random.chance(0.2)) {
      const old = random.pick(this.#sessions.former);
      counts.add("raw: late opening");
      this.#sendAnywhere({ kind: "command", payload: old.opening }, () => {
        this.#parts.sink.emit({ kind: "openSent", client: this.id, key: old.key });
      });
    }
  }

  #flood({ id, key }: RawSession): void {
    const query: ClientMessage = { kind: "query", id: 1, query: { kind: "status" } };
    const resume: ClientMessage = { kind: "resume", session: id, key };
    this.#connections.flood(this.#parts.random.chance(0.5) ? [query, query, query] : [resume]);
  }

  #throwGarbage(session: RawSession): void {
    const { random, counts } = this.#parts;
    counts.add("raw: garbage");
    const good = encodeClientFrame([{ kind: "resume", session: Math.max(1, session.id), key: session.key }]);
    const bytes = Uint8Array.from({ length: random.between(1, 64) }, () => random.integer(256));
    const cut = good.slice(0, random.between(1, good.length - 1));
    this.#connections.throwAt(random.pick(this.#options.endpoints), [random.pick([bytes, cut])], () => undefined);
  }

  #resumeWithWrongKey(session: RawSession): void {
    const { random, counts, onDefect } = this.#parts;
    counts.add("raw: wrong key");
    const frame = encodeClientFrame([{ kind: "resume", session: session.id, key: random.key() }]);
    this.#connections.throwAt(random.pick(this.#options.endpoints), [frame], (message) => {
      if (message.kind === "resumed") onDefect(new Error(`session ${session.id} is resumed with a wrong key`));
    });
  }

  /** Commands overtake one another. */
  #sendLater(session: RawSession, command: RawCommand): void {
    const { process, random } = this.#parts;
    process.setTimer(random.fraction() * reorderMsMax, () => this.#sendCommand(session, command));
  }

  #sendCommand(session: RawSession, { payload, request, call }: RawCommand): void {
    this.#sendAnywhere({ kind: "command", payload }, () => {
      this.#parts.sink.emit({ kind: "sent", client: this.id, session: session.id, request, call });
    });
  }

  /** Mostly to whoever leads; sometimes twice, to another node, or to all. `onSent` is called before each. */
  #sendAnywhere(message: ClientMessage, onSent: () => void): void {
    const { random, counts } = this.#parts;
    const { leaders, welcome } = this.#connections;
    const targets: RawConnection[] = random.chance(0.9) ? [...leaders] : random.shuffle(welcome).slice(0, 2);
    if (targets.length > 0 && random.chance(0.1)) {
      counts.add("raw: sent twice");
      targets.push(random.pick(targets));
    }
    for (const target of targets) {
      onSent();
      this.#connections.send(target, [message]);
    }
  }
}
