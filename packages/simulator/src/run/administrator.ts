/**
 * Who changes the cluster's members in a run: starts new machines, asks the leader, asks again, and loses patience. It breaks no promise's
 * ground: with what it asks for, a majority of undamaged directories is left.
 */
import type { MembershipChange } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";
import type { AdminCall } from "../node/admin-call.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import { probed } from "../node/host-access.js";
import type { Random } from "../random.js";
import { memberFor } from "./members.js";
import type { World } from "./world.js";

export type Change = Partial<MembershipChange>;

interface Asking {
  /** Whom to ask; the leader of the moment if it is left out. */
  readonly at?: SimulatedNode;
  readonly isForced?: boolean;
  /** How long it waits for an answer. */
  readonly patienceMs: number;
}

interface Asked {
  readonly host: NodeHost;
  readonly change: MembershipChange;
  readonly call: AdminCall;
}

/** Nothing was asked: it would leave no sound majority, or there is nobody to ask. */
const notAsked = "not asked";
/** No answer came in time: what was asked may happen all the same. */
const silent = "silent";

/** These say that it may go better soon. */
const passing: ReadonlySet<string> = new Set([
  notAsked,
  silent,
  "unknown_outcome",
  "not_leader",
  "not_ready",
  "transfer_running",
  "change_in_progress",
  "not_caught_up",
  "would_lose_quorum",
  "overloaded",
]);

export class Administrator {
  readonly #world: World;
  readonly #waiting = new Set<() => void>();
  /** What nodes may not have looked at yet. */
  #asked: readonly Asked[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  get #electionTimeoutMs(): number {
    return this.#world.plan.timing.electionTimeoutMs;
  }

  /** A machine that was never used, with its node waiting to be added; null when none is left, or no cluster is there yet. */
  async startSpare(): Promise<SimulatedNode | null> {
    const world = this.#world;
    const spare = world.nodes.find((node) => !node.isInUse);
    if (spare === undefined || world.clusterId === null) return null;
    spare.start();
    while (spare.directory.instance === null) await world.sleep(this.#electionTimeoutMs / 20);
    return spare;
  }

  /** One request. "completed", a refusal's code, `silent` or `notAsked`. */
  ask(change: Change, { at, isForced = false, patienceMs }: Asking): Promise<string> {
    const world = this.#world;
    const node = at ?? world.leader();
    if (node === null) return this.nextLeader(patienceMs).then(() => notAsked);
    const areFaultsOver = world.areFaultsOver;
    const whole: MembershipChange = { add: [], promote: [], remove: [], ...change };
    return new Promise((resolve) => {
      const isMeant = (): boolean => {
        // In the calm nothing may happen that was asked for in the storm.
        if (this.isSafe(whole) && world.areFaultsOver === areFaultsOver) return true;
        resolve(notAsked);
        return false;
      };
      const call = node.changeMembers({ ...whole, isForced }, isMeant, (answer) => {
        world.counts.add(answer === "completed" ? "change completed" : `change refused: ${answer}`);
        resolve(answer);
      });
      if (node.host !== null) this.#asked = [...this.#asked, { host: node.host, change: whole, call }];
      world.after(patienceMs, () => {
        call.abandon();
        resolve(silent);
      });
    });
  }

  /** Asks until it is done, or won't be. Returns whether it is. */
  async insist(change: Change, options: { readonly isForced?: boolean; readonly forMs: number }): Promise<boolean> {
    const world = this.#world;
    const untilMs = world.nowMs + options.forMs;
    const patienceMs = Math.max(options.forMs / 4, this.#electionTimeoutMs);
    while (world.nowMs < untilMs) {
      const answer = await this.ask(change, { ...options, patienceMs });
      if (answer === "completed" || this.isDone(change)) return true;
      if (!passing.has(answer)) return false;
      await this.nextLeader(this.#electionTimeoutMs / 4);
    }
    return this.isDone(change);
  }

  /** A leader was elected this very moment: who waits for one asks it before it can be ready. */
  onLeader(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves when a leader is elected, or the time is over. */
  nextLeader(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      this.#world.later(ms, wake);
    });
  }

  /** Adds a node that waits, as a learner. */
  add(node: SimulatedNode, forMs: number): Promise<boolean> {
    const { instance } = node.directory;
    if (instance === null) throw new Error(`${node.id} has no instance yet`);
    return this.insist({ add: [memberFor(node.id, instance)] }, { forMs });
  }

  /** Whether its leader would promote it, within this time. */
  async untilCaughtUp({ id }: SimulatedNode, forMs: number): Promise<boolean> {
    const world = this.#world;
    const untilMs = world.nowMs + forMs;
    while (world.nowMs < untilMs) {
      const host = world.leader()?.host ?? null;
      const peer =
        host === null
          ? undefined
          : probed(host)
              .raft.status()
              .peers.find((each) => each.id === id);
      if (peer?.isCaughtUp === true) return true;
      await world.sleep(this.#electionTimeoutMs / 10);
    }
    return false;
  }

  /** Whether what was asked a moment ago, and no configuration shows yet, is safe without this node too. */
  canSpare(node: SimulatedNode): boolean {
    const hosts = this.#world.nodes.map(({ host }) => host);
    this.#asked = this.#asked.filter(({ host, call }) => call.isWaiting && hosts.includes(host));
    return this.#asked.every(({ change }) => this.isSafe(change, (each) => each !== node && !each.isSpoilt));
  }

  /** Whether a sound majority is left with it, and one of the nodes that all clients know. */
  isSafe({ promote, remove }: MembershipChange, isSound = (node: SimulatedNode): boolean => !node.isSpoilt): boolean {
    const { members } = this.#world;
    const { voters, learners } = members.configuration;
    const next = [...voters, ...learners.filter(({ id }) => promote.includes(id))].filter(
      ({ id }) => !remove.includes(id),
    );
    const stays = members.firstMembers.some((node) => isSound(node) && next.some(({ id }) => id === node.id));
    return stays && members.isMajority(next, isSound) && members.isQuorum(isSound);
  }

  /** As far as it is committed. */
  isDone({ add = [], promote = [], remove = [] }: Change): boolean {
    const { members } = this.#world;
    const { voters, learners, outgoing } = members.configuration;
    const has = [...voters, ...learners].map(({ id, instance }) => `${id}/${instance}`);
    return (
      outgoing.length === 0 &&
      add.every(({ id, instance }) => has.includes(`${id}/${instance}`)) &&
      promote.every((id) => members.isVoter(id)) &&
      remove.every((id) => members.isRemoved(id))
    );
  }
}

/** Some nodes of those, none twice. */
export function pickSome(random: Random, nodes: readonly SimulatedNode[], count: number): SimulatedNode[] {
  return random.shuffle(nodes).slice(0, count);
}
