/**
 * Rules 5 and 11: equal index, equal effects and equal state, however a node got there (from its log, again after a restart, or from a
 * snapshot), and the state machine's own rules. Effects are compared at every entry; walks over the whole state are made the rarer the larger it is.
 */
import type { Effect, LockMachine } from "@holdfast/lock";
import type { NodeId } from "@holdfast/raft";
import { demand, InvariantError } from "./invariant-error.js";
import { Recent } from "./recent.js";
import type { Life, WatchedNode } from "./watched-node.js";

const remembered = 4_096;
/** Records of the state for one entry between two walks: the price of a walk is spread over that many entries. */
const recordsPerEntry = 4;
const stepMin = 16;

const rule = "state-machine-safety";

export class States {
  readonly #effects = new Recent<number, number>(remembered);
  readonly #hashes = new Recent<number, string>(remembered);

  /** Right after an entry was applied. */
  onApplied(id: NodeId, machine: LockMachine, index: number, effects: readonly Effect[]): void {
    const digest = digestOf(effects);
    const known = this.#effects.get(index);
    if (known === undefined) this.#effects.set(index, digest);
    demand(
      known === undefined || known === digest,
      rule,
      () => `${id} has other effects of entry ${index} than others had`,
    );
    if (index % stepFor(machine) === 0 || this.#hashes.has(index)) this.#compare(id, machine, index);
  }

  /** After an event: machines that were loaded from a snapshot, and those that a snapshot is about to be taken of. */
  check(node: WatchedNode, life: Life): void {
    const { machine, lastApplied, snapshotBegun } = life.probe;
    const isLoaded = machine !== life.machine;
    life.machine = machine;
    const isBegun = snapshotBegun !== null && snapshotBegun !== life.snapshotBegun;
    life.snapshotBegun = snapshotBegun;
    if (isLoaded) checkMachine(node.id, machine);
    // A machine that was loaded and has gone on in the same event counts as applied to: it is where the others were.
    if (isLoaded || isBegun) this.#compare(node.id, machine, lastApplied);
  }

  #compare(id: NodeId, machine: LockMachine, index: number): void {
    const hash = machine.stateHash();
    const known = this.#hashes.get(index);
    if (known === undefined) {
      this.#hashes.set(index, hash);
      // Those whose hash is equal need no look of their own.
      checkMachine(id, machine);
    }
    demand(known === undefined || known === hash, rule, () => `${id} has another state at ${index} than others had`);
  }
}

export function checkMachine(id: NodeId, machine: LockMachine): void {
  try {
    machine.checkInvariants();
  } catch (error) {
    throw new InvariantError("lock-machine", `${id}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Equal on nodes whose states are equal; a power of two, so that states that differ meet at some index all the same. */
function stepFor(machine: LockMachine): number {
  const records = machine.sessionCount + machine.lockCount + machine.holdCount + machine.waiterCount;
  let step = stepMin;
  while (step * recordsPerEntry < records) step *= 2;
  return step;
}

function digestOf(effects: readonly Effect[]): number {
  let digest = 0x811c9dc5;
  for (const effect of effects) digest = digestOfValue(digest, effect);
  return digest;
}

function digestOfValue(digest: number, value: unknown): number {
  if (typeof value === "number") return mix(mix(digest, value | 0), Math.floor(value / 0x1_0000_0000) | 0);
  if (typeof value === "string") return digestOfText(digest, value);
  if (typeof value === "boolean") return mix(digest, value ? 1 : 2);
  if (value === null || typeof value !== "object") return mix(digest, 3);
  let mixed = mix(digest, 4);
  for (const each of Object.values(value)) mixed = digestOfValue(mixed, each);
  return mixed;
}

function digestOfText(digest: number, text: string): number {
  let mixed = mix(digest, text.length);
  for (let at = 0; at < text.length; at += 1) mixed = mix(mixed, text.charCodeAt(at));
  return mixed;
}

function mix(hash: number, value: number): number {
  return Math.imul(hash ^ value, 0x0100_0193) ^ (hash >>> 15);
}
