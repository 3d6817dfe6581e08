/** The peers with which this node has links, or dials for them: those of the roster, and for a while those that are in it no more. */
import type { NodeId } from "@holdfast/raft";
import type { PeerRoster } from "./peer-roster.js";
import { Peer } from "./peer.js";
import type { PeerOptions, PeerOwner, PeerParts } from "./peer.js";
import type { Timer } from "./ports.js";

export interface LinkedPeersOptions extends Omit<PeerOptions, "id" | "address"> {
  /** The links of a node that is no member any more stay for so long: the leader tells it so. See raft's peers.ts. */
  readonly leavingMs: number;
}

/** Silence of so many periods ends a link. Raft's timeouts don't rest on it: it only clears away what is half-open. */
const quietPeriodsMax = 2;

export class LinkedPeers implements Iterable<Peer> {
  private readonly options: LinkedPeersOptions;
  private readonly parts: PeerParts;
  private readonly roster: PeerRoster;
  private readonly owner: PeerOwner;
  private readonly onDropped: (id: NodeId) => void;
  private readonly peers = new Map<NodeId, Peer>();
  /** No members any more: each with the time that its links still have. */
  private readonly leaving = new Map<NodeId, Timer>();
  private hasStarted = false;
  private isStopped = false;

  constructor(
    options: LinkedPeersOptions,
    parts: PeerParts,
    roster: PeerRoster,
    owner: PeerOwner,
    onDropped: (id: NodeId) => void,
  ) {
    this.options = options;
    this.parts = parts;
    this.roster = roster;
    this.owner = owner;
    this.onDropped = onDropped;
  }

  [Symbol.iterator](): Iterator<Peer> {
    return this.peers.values();
  }

  get(id: NodeId): Peer | undefined {
    return this.peers.get(id);
  }

  get hasOpenLink(): boolean {
    for (const peer of this.peers.values()) if (!peer.isDown) return true;
    return false;
  }

  /** They are dialled. */
  get isStarted(): boolean {
    return this.hasStarted;
  }

  start(): void {
    this.hasStarted = true;
    for (const peer of this.peers.values()) peer.dialAll();
  }

  /** Nobody comes or goes any more; the links stay as they are. */
  stop(): void {
    this.isStopped = true;
    for (const timer of this.leaving.values()) timer.cancel();
    this.leaving.clear();
  }

  /** Their links are made anew, with a new hello. */
  renew(): void {
    if (this.hasStarted) for (const peer of this.peers.values()) peer.renew();
  }

  /** Once a period. */
  sweep(): void {
    for (const peer of this.peers.values()) peer.sweep(quietPeriodsMax);
    this.roster.forgetGuests((id) => this.peers.get(id)?.linkCount === 0);
    this.match();
  }

  /** The roster may have changed. */
  match(): void {
    if (this.isStopped) return;
    const wanted = this.roster.addresses();
    for (const [id, address] of wanted) {
      this.leaving.get(id)?.cancel();
      this.leaving.delete(id);
      // Called at another address by now, it is another link.
      if (this.peers.get(id)?.address !== address) this.drop(id);
      if (!this.peers.has(id)) this.add(id, address);
    }
    for (const id of this.peers.keys()) if (!wanted.has(id) && !this.leaving.has(id)) this.letGo(id);
  }

  private add(id: NodeId, address: string): void {
    const peer = new Peer({ ...this.options, id, address }, this.parts, this.owner);
    this.peers.set(id, peer);
    if (this.hasStarted) peer.dialAll();
  }

  private letGo(id: NodeId): void {
    if (!this.hasStarted) {
      this.peers.delete(id);
      return;
    }
    const timer = this.parts.clock.setTimer(this.options.leavingMs, () => {
      this.leaving.delete(id);
      this.parts.logger.info({ peer: id }, `${id} is no member any more: its links are closed`);
      this.drop(id);
    });
    this.leaving.set(id, timer);
  }

  private drop(id: NodeId): void {
    this.peers.get(id)?.close();
    this.peers.delete(id);
    this.onDropped(id);
  }
}
