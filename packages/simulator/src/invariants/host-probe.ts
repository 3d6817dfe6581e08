/** Where the watch reaches into a node host: everything that it reads of its private parts. The runner needs more: node/host-access.ts. */
import type { Effect, LockMachine } from "@holdfast/lock";
import type { EntryCodec, Raft } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";

type OnEffects = (index: number, effects: readonly Effect[]) => void;

/** Declarations leave out the types of private parts: these are what NodeHost's sources say. */
export interface ProbedHost {
  readonly raft: Raft;
  readonly isStopped: boolean;
  readonly applier: {
    readonly machine: LockMachine;
    readonly lastApplied: number;
    readonly events: { onEffects: OnEffects };
  };
  readonly snapshots: { readonly keeper: { readonly taking: object | null } };
  readonly queue: {
    readonly events: { readonly length: number };
    readonly clients: { readonly lanes: ReadonlyMap<unknown, { readonly frames: { readonly length: number } }> };
  };
  readonly persister: { readonly queue: { readonly length: number } };
  readonly rounds: { readonly inFlight: { readonly size: number }; readonly unapplied: { readonly length: number } };
  readonly parts: { readonly codec: EntryCodec };
}

/** Called right after an entry has been applied, before the host acts on its effects. It must not throw: the host would take it for its own. */
export type AppliedListener = (machine: LockMachine, index: number, effects: readonly Effect[]) => void;

export class HostProbe {
  readonly raft: Raft;
  readonly #host: ProbedHost;

  constructor(host: NodeHost, onApplied: AppliedListener) {
    const probed = host as unknown as ProbedHost;
    this.#host = probed;
    this.raft = probed.raft;
    const { events } = probed.applier;
    const inner = events.onEffects.bind(events);
    events.onEffects = (index, effects) => {
      onApplied(probed.applier.machine, index, effects);
      inner(index, effects);
    };
  }

  /** A host that has stopped may have stopped in mid-turn: its parts need not fit together any more. */
  get isStopped(): boolean {
    return this.#host.isStopped;
  }

  get machine(): LockMachine {
    return this.#host.applier.machine;
  }

  get lastApplied(): number {
    return this.#host.applier.lastApplied;
  }

  /** The own snapshot that is being taken: the machine stood where it begins when the event that began it ended. */
  get snapshotBegun(): object | null {
    return this.#host.snapshots.keeper.taking;
  }

  get queuedEvents(): number {
    return this.#host.queue.events.length;
  }

  get queuedFrames(): number {
    let frames = 0;
    for (const lane of this.#host.queue.clients.lanes.values()) frames += lane.frames.length;
    return frames;
  }

  get queuedWrites(): number {
    return this.#host.persister.queue.length;
  }

  /** Quorum rounds that wait for their confirmation or for the state machine. */
  get openRounds(): number {
    return this.#host.rounds.inFlight.size + this.#host.rounds.unapplied.length;
  }

  get codec(): EntryCodec {
    return this.#host.parts.codec;
  }
}
