/**
 * The explored cluster: its nodes, what was sent, what an observer remembers, and how much may still go wrong.
 *
 * What a node sends without changing itself (a repeated answer, a heartbeat) is sent at once, as soon as it could be: since messages stay
 * on their way for ever, the cluster in which they were sent can do all that the other can. So only these clusters are explored, and the
 * search needs far fewer states. A path of the search is spelled out by `spell` and shortened by `shorten`.
 */
import type { NodeId } from "@holdfast/raft";
import type { CoveringModel } from "../covering-search.js";
import type { MergingModel } from "../merging-search.js";
import type { Step } from "../search.js";
import { Ghosts } from "./ghost.js";
import type { Ghost } from "./ghost.js";
import { actionsOf, crashesOf, resetsOf, timeoutsOf } from "./local-actions.js";
import { codeOf } from "./local.js";
import type { LocalAction, LocalState, Reactions, Transition } from "./local.js";
import { isSubset, Network } from "./network.js";
import type { Envelope, Inbox, Sent } from "./network.js";
import type { OpenedRaft } from "./opened-core.js";
import type { Scope } from "./scope.js";
import { World } from "./world.js";

export interface Cluster {
  readonly nodes: readonly LocalState[];
  readonly sent: Sent;
  readonly ghost: Ghost;
  readonly timeoutsLeft: number;
  readonly crashesLeft: number;
  readonly resetsLeft: number;
  readonly joinsLeft: number;
}

export interface ClusterAction {
  readonly at: number;
  readonly local: LocalAction;
  /** The turn goes on: what comes of it is taken with the node's next event. */
  readonly isJoined: boolean;
}

type ClusterStep = Step<Cluster, ClusterAction>;

export class RaftModel implements CoveringModel<Cluster, ClusterAction>, MergingModel<Cluster, ClusterAction> {
  readonly scope: Scope;
  readonly ids: readonly NodeId[];
  readonly initial: Cluster;
  /** The start, before anything was sent. */
  readonly #start: Cluster;
  readonly #network: Network;
  readonly #world: World;
  readonly #ghosts = new Ghosts();

  constructor(opened: OpenedRaft, scope: Scope) {
    this.scope = scope;
    this.ids = Array.from({ length: scope.nodes }, (_, at) => `n${at + 1}`);
    this.#network = new Network(this.ids);
    this.#world = new World(opened, this.#network, scope);
    const nodes = this.ids.map((_, at) => this.#world.initial(at));
    const { timeoutsMax, crashesMax, resetsMax, joinsMax } = scope;
    const budget = { timeoutsLeft: timeoutsMax, crashesLeft: crashesMax, resetsLeft: resetsMax, joinsLeft: joinsMax };
    const start: Cluster = { nodes, sent: this.#network.empty, ghost: this.#ghosts.none, ...budget };
    this.#start = scope.isLed ? this.#led(start) : start;
    this.initial = this.#close(this.#start);
  }

  /** How many states of single nodes, messages and sets of messages the search has met. */
  get parts(): { readonly nodeStates: number; readonly messages: number; readonly messageSets: number } {
    const { messageCount, setCount } = this.#network;
    return { nodeStates: this.#world.stateCount, messages: messageCount, messageSets: setCount };
  }

  keyFor(cluster: Cluster): string {
    return `${this.familyFor(cluster)} ${cluster.sent.number} ${budgetText(cluster)}`;
  }

  familyFor({ nodes, ghost }: Cluster): string {
    let key = "";
    for (const { number } of nodes) key += `${number.toString(36)} `;
    return `${key}${ghost.number.toString(36)}`;
  }

  /** More messages on their way, and more that may go wrong: nothing is lost by that. */
  covers(abler: Cluster, cluster: Cluster): boolean {
    if (abler.timeoutsLeft < cluster.timeoutsLeft || abler.crashesLeft < cluster.crashesLeft) return false;
    if (abler.resetsLeft < cluster.resetsLeft || abler.joinsLeft < cluster.joinsLeft) return false;
    return isSubset(cluster.sent, abler.sent);
  }

  rankFor({ sent, timeoutsLeft, crashesLeft, resetsLeft, joinsLeft }: Cluster): number {
    const counted = [timeoutsLeft, crashesLeft, resetsLeft, joinsLeft].filter(isCounted);
    return counted.reduce((sum, left) => sum + left, sent.count);
  }

  /**
   * Clusters that differ in the messages on their way are merged, since more of them lose nothing; but not when the votes differ: those of
   * two histories could elect two leaders of one term.
   */
  groupFor(cluster: Cluster): string {
    return `${this.familyFor(cluster)} ${cluster.sent.votes.number} ${budgetText(cluster)}`;
  }

  merge(known: Cluster, cluster: Cluster): { readonly state: Cluster; readonly violation: string | null } | null {
    const sent = this.#network.merge(known.sent, cluster.sent);
    if (sent === known.sent) return null;
    const state = this.#close({ ...known, sent });
    return { state, violation: state.sent.violation };
  }

  /** Terms, entries and commits seldom get fewer. */
  progressOf({ nodes }: Cluster): number {
    let progress = 0;
    for (const { term, log, commitIndex } of nodes) progress += 20 * term + 3 * log.length + 2 * commitIndex;
    return progress;
  }

  *stepsFrom(cluster: Cluster): Generator<ClusterStep> {
    for (const node of cluster.nodes) {
      const { at } = node;
      for (const { local, transition } of this.#reactionsOf(node, inboxOf(cluster.sent, at)).steps) {
        yield this.#closed(this.#stepFor(cluster, { at, local, isJoined: false }, transition));
      }
      for (const action of this.#countedOf(cluster, node)) {
        const transition = this.#world.transition(node, action.local, action.isJoined);
        if (!transition.isCut) yield this.#closed(this.#stepFor(cluster, action, transition));
      }
    }
  }

  /** The single actions along a path of the search. */
  spell(path: readonly ClusterAction[]): ClusterAction[] {
    const spelled: ClusterAction[] = [];
    let cluster = this.#spellSending(this.#start, spelled);
    for (const action of path) {
      const transition = this.#world.transition(nodeOf(cluster, action.at), action.local, action.isJoined);
      spelled.push(action);
      cluster = this.#spellSending(this.#stepFor(cluster, action, transition).state, spelled);
    }
    return spelled;
  }

  /** Leaves out what a violation doesn't need, one action after the other, until each of them is needed. */
  shorten(spelled: readonly ClusterAction[]): readonly ClusterAction[] {
    const rule = this.replay(spelled)?.rule;
    let shortest = spelled;
    for (let isShorter = true; isShorter; ) {
      isShorter = false;
      for (let at = shortest.length - 1; at >= 0; at -= 1) {
        const shorter = shortest.toSpliced(at, 1);
        if (this.replay(shorter)?.rule !== rule) continue;
        shortest = shorter;
        isShorter = true;
      }
    }
    return shortest;
  }

  /** The rule that these actions break, and the cluster then; null when they break none, or one of them can't happen. */
  replay(actions: readonly ClusterAction[]): { readonly rule: string; readonly state: Cluster } | null {
    let cluster = this.#start;
    for (const action of actions) {
      if (!this.#canHappen(cluster, action)) return null;
      const transition = this.#world.transition(nodeOf(cluster, action.at), action.local, action.isJoined);
      if (transition.isCut) return null;
      const { state, violation } = this.#stepFor(cluster, action, transition);
      if (violation !== null) return { rule: violation, state };
      cluster = state;
    }
    return null;
  }

  #stepFor(cluster: Cluster, action: ClusterAction, transition: Transition): ClusterStep {
    const before = nodeOf(cluster, action.at);
    const sent = this.#network.union(cluster.sent, transition.sent);
    const nodes = cluster.nodes.with(action.at, transition.next);
    const { ghost, violation } = this.#ghosts.judge(cluster.ghost, before, transition, nodes);
    const { kind } = action.local;
    const state: Cluster = {
      nodes,
      sent,
      ghost,
      timeoutsLeft: cluster.timeoutsLeft - (kind === "electionTimeout" ? 1 : 0),
      crashesLeft: cluster.crashesLeft - (kind === "crash" ? 1 : 0),
      resetsLeft: cluster.resetsLeft - (kind === "peerGone" || kind === "peerReset" ? 1 : 0),
      joinsLeft: cluster.joinsLeft - (action.isJoined ? 1 : 0),
    };
    return { action, state, violation: transition.violation ?? sent.violation ?? violation };
  }

  /** What is possible a few times only, in one run. */
  *#countedOf(cluster: Cluster, node: LocalState): Generator<ClusterAction> {
    const { at } = node;
    if (cluster.joinsLeft > 0) {
      for (const local of actionsOf(node, inboxOf(cluster.sent, at), this.scope, this.ids))
        yield { at, local, isJoined: true };
    }
    if (isCounted(cluster.timeoutsLeft)) {
      for (const local of timeoutsOf(node, this.scope)) yield { at, local, isJoined: false };
    }
    if (isCounted(cluster.crashesLeft)) for (const local of crashesOf(node)) yield { at, local, isJoined: false };
    if (isCounted(cluster.resetsLeft))
      for (const local of resetsOf(node, this.ids)) yield { at, local, isJoined: false };
  }

  #reactionsOf(node: LocalState, inbox: Inbox): Reactions {
    let reactions = node.reactions.get(inbox.number);
    if (reactions === undefined) {
      reactions = this.#findReactions(node, inbox);
      node.reactions.set(inbox.number, reactions);
    }
    return reactions;
  }

  #findReactions(node: LocalState, inbox: Inbox): Reactions {
    const sent = new Set<Envelope>();
    const steps: { local: LocalAction; transition: Transition }[] = [];
    for (const local of actionsOf(node, inbox, this.scope, this.ids)) {
      const transition = this.#world.transition(node, local, false);
      if (transition.isCut) continue;
      if (isSendingOnly(node, transition)) for (const envelope of transition.sent) sent.add(envelope);
      else steps.push({ local, transition });
    }
    return { sent: [...sent], steps };
  }

  #closed(step: ClusterStep): ClusterStep {
    if (step.violation !== null) return step;
    const state = this.#close(step.state);
    return { ...step, state, violation: state.sent.violation };
  }

  /** Everything is sent that can be sent without a change of any node. */
  #close(cluster: Cluster): Cluster {
    let { sent } = cluster;
    for (let before: Sent | null = null; before !== sent; ) {
      before = sent;
      for (const node of cluster.nodes) {
        sent = this.#network.union(sent, this.#reactionsOf(node, inboxOf(sent, node.at)).sent);
        if (sent.violation !== null) return { ...cluster, sent };
      }
    }
    return sent === cluster.sent ? cluster : { ...cluster, sent };
  }

  /** The same, action by action. */
  #spellSending(from: Cluster, spelled: ClusterAction[]): Cluster {
    let cluster = from;
    for (let before: Sent | null = null; before !== cluster.sent; ) {
      before = cluster.sent;
      for (const node of cluster.nodes) {
        for (const local of [...actionsOf(node, inboxOf(cluster.sent, node.at), this.scope, this.ids)]) {
          const transition = this.#world.transition(node, local, false);
          if (transition.isCut || !isSendingOnly(node, transition)) continue;
          const sent = this.#network.union(cluster.sent, transition.sent);
          if (sent === cluster.sent) continue;
          spelled.push({ at: node.at, local, isJoined: false });
          cluster = { ...cluster, sent };
        }
      }
    }
    return cluster;
  }

  #canHappen(cluster: Cluster, action: ClusterAction): boolean {
    const node = nodeOf(cluster, action.at);
    const code = codeOf(action.local);
    const isSame = (local: LocalAction): boolean => codeOf(local) === code;
    for (const counted of this.#countedOf(cluster, node)) {
      if (counted.isJoined === action.isJoined && isSame(counted.local)) return true;
    }
    return (
      !action.isJoined && [...actionsOf(node, inboxOf(cluster.sent, action.at), this.scope, this.ids)].some(isSame)
    );
  }

  /** The first node is elected, and all but heartbeats is heard in the order of sending until nothing more happens. Then nothing is on its way. */
  #led(start: Cluster): Cluster {
    let cluster = this.#after(start, 0, { kind: "electionTimeout" });
    const heard = new Set<Envelope>();
    for (let before: Cluster | null = null; before !== cluster; ) {
      before = cluster;
      for (const { at, pending } of before.nodes) {
        if (pending.length > 0) cluster = this.#after(cluster, at, { kind: "persist", count: pending.length });
      }
      for (const envelope of inOrder(cluster.sent)) {
        if (heard.has(envelope) || envelope.message.kind === "heartbeat") continue;
        heard.add(envelope);
        cluster = this.#after(cluster, envelope.to, { kind: "deliver", envelope, isLate: false });
      }
    }
    return { ...cluster, sent: this.#network.empty, timeoutsLeft: start.timeoutsLeft };
  }

  #after(cluster: Cluster, at: number, local: LocalAction): Cluster {
    const node = nodeOf(cluster, at);
    const { state, violation } = this.#stepFor(
      cluster,
      { at, local, isJoined: false },
      this.#world.transition(node, local, false),
    );
    if (violation !== null) throw new Error(violation);
    return state.nodes[at] === node && state.sent === cluster.sent ? cluster : state;
  }
}

function isSendingOnly(node: LocalState, { next, violation }: Transition): boolean {
  return next === node && violation === null;
}

/** As text: how much may still go wrong. */
function budgetText({ timeoutsLeft, crashesLeft, resetsLeft, joinsLeft }: Cluster): string {
  return `${timeoutsLeft} ${crashesLeft} ${resetsLeft} ${joinsLeft}`;
}

/** What has no bound is among what may happen any number of times. */
function isCounted(left: number): boolean {
  return left > 0 && left !== Number.POSITIVE_INFINITY;
}

/** In the order of sending. */
function inOrder({ to }: Sent): Envelope[] {
  return to.flatMap(({ envelopes }) => envelopes).sort((a, b) => a.number - b.number);
}

function nodeOf({ nodes }: Cluster, at: number): LocalState {
  const node = nodes[at];
  if (node === undefined) throw new Error(`there is no node ${at}`);
  return node;
}

function inboxOf({ to }: Sent, at: number): Inbox {
  const inbox = to[at];
  if (inbox === undefined) throw new Error(`there is no node ${at}`);
  return inbox;
}
