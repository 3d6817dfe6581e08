/** Whom this node links with, and where they are called. */
import type { Configuration, NodeId } from "@holdfast/raft";
import type { FormedFacts } from "./peer-hello.js";

export class PeerRoster {
  /** Null before formation. */
  formed: FormedFacts | null = null;
  /** The newest configuration that is known to be committed. */
  committed: Configuration | null = null;
  private readonly self: NodeId;
  private readonly fileAddresses: ReadonlyMap<NodeId, string>;
  /** Peers that this node's log doesn't have, and that have said where they can be called. */
  private readonly guests = new Map<NodeId, string>();

  constructor(self: NodeId, peers: readonly { readonly id: NodeId; readonly address: string }[]) {
    this.self = self;
    this.fileAddresses = new Map(peers.map(({ id, address }) => [id, address]));
  }

  /** Of the file, this node too. */
  get fileIds(): ReadonlySet<NodeId> {
    return new Set([this.self, ...this.fileAddresses.keys()]);
  }

  /** Before formation those of the file, then the members. A file's address goes before the log's: it is the operator's newest word. */
  addresses(): ReadonlyMap<NodeId, string> {
    const { formed, committed, fileAddresses, guests } = this;
    if (formed === null) return new Map([...guests, ...fileAddresses]);
    const wanted = new Map<NodeId, string>();
    for (const [id, address] of guests) if (committed?.removed.includes(id) !== true) wanted.set(id, address);
    for (const { voters, outgoing, learners } of [committed ?? formed.configuration, formed.configuration]) {
      for (const { id, peer } of [...voters, ...outgoing, ...learners]) wanted.set(id, fileAddresses.get(id) ?? peer);
    }
    wanted.delete(this.self);
    return wanted;
  }

  admit(id: NodeId, address: string): void {
    this.guests.set(id, address);
  }

  /** Guests that have gone away again. */
  forgetGuests(isGone: (id: NodeId) => boolean): void {
    for (const id of this.guests.keys()) if (isGone(id)) this.guests.delete(id);
  }
}
