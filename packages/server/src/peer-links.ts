/**
 * The links to the other nodes. Each node dials each other node twice (see peer-lanes.ts) and sends only on what it
 * has dialled, so the death of a process is seen on both ends at once, and two sockets never compete for one direction.
 */
import type { VersionRange } from "@holdfast/lock";
import { membershipBounds } from "@holdfast/raft";
import type { Configuration, Message, NodeId, Position, Random } from "@holdfast/raft";
import { limits } from "@holdfast/wire";
import type { PeerHello } from "@holdfast/wire";
import type { Address } from "./address.js";
import { IncomingLink } from "./incoming-link.js";
import type { FormedFrame, IncomingEvents } from "./incoming-link.js";
import { LinkedPeers } from "./linked-peers.js";
import { instancesOf, judgeHello } from "./peer-hello.js";
import type { FormedFacts, HelloRefusal } from "./peer-hello.js";
import type { Lane } from "./peer-lanes.js";
import { PeerMemory } from "./peer-memory.js";
import type { PeerPromise } from "./peer-memory.js";
import { PeerRoster } from "./peer-roster.js";
import type { Peer, PeerOwner } from "./peer.js";
import { Sweeper } from "./sweeper.js";
import type { Clock, Logger, PeerEvents, PeerLinks, PeerRefusal } from "./ports.js";
import type { Acceptor, PeerTransport } from "./transport.js";

export interface PeerLinksOptions {
  readonly self: {
    readonly id: NodeId;
    readonly instance: string;
    readonly boot: number;
    readonly listen: Address;
    readonly versions: VersionRange;
    /** Advertised, "host:port": where those call back that don't find this node in their logs yet. */
    readonly peer?: string;
  };
  /** The cluster's name in the configuration file. */
  readonly cluster: string;
  /** The cluster that this node waits to be added to: without a file's nodes it takes calls from whoever belongs there. */
  readonly joins?: string;
  /** The other nodes of the file, with their advertised "host:port". Of a formed node only their addresses count. */
  readonly peers: readonly { readonly id: NodeId; readonly address: string }[];
  /** Null: none is asked for. */
  readonly secret: string | null;
  readonly electionTimeoutMs: number;
  /** Bytes that wait in one data socket. */
  readonly bufferedBytesMax: number;
}

/** What this directory held on its disk when the process started or was formed: later promises are this process's own. */
export interface DurableFacts {
  readonly term: number;
  readonly last: Position;
}

export interface PeerLinksEvents extends PeerEvents {
  /** A peer refuses this node. `isPeerFormed`: it knows the cluster's configuration, not only a file. */
  onRefused(refusal: PeerRefusal, isPeerFormed: boolean): void;
  /** A committed configuration has this node's id with another directory, that of instance `other`. */
  onReplaced(other: string): void;
  /** A control link was made; `met()` may say more than before. */
  onMet(): void;
  onFormed(from: NodeId, frame: FormedFrame): void;
}

export interface PeerLinksParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly transport: PeerTransport;
  /** A fresh random name, for this process. */
  drawName(): string;
  /** As far as this node has applied the log. */
  clusterVersion(): number;
}

/** A peer with which links stand in both directions. */
export interface MetPeer {
  readonly instance: string;
  readonly clusterId: string | null;
  readonly versions: VersionRange;
}

export interface ServerPeerLinks extends PeerLinks {
  /** Listens and begins to dial. Resolves with the port; rejects with a ListenError. */
  start(): Promise<number>;
  met(): ReadonlyMap<NodeId, MetPeer>;
  /**
   * This node is formed, durably. Links that stand are made anew with a new hello; unformed members get what they lack. A node that is
   * formed at its start says so before start().
   */
  becomeFormed(facts: FormedFacts, durable: DurableFacts): void;
  notePromise(peer: NodeId, promise: PeerPromise): void;
  /** Closes without a goodbye, as a death would: the peers shall not wait for this node. */
  abandon(): Promise<void>;
  figures(): { readonly links: number; readonly bufferedBytes: number };
}

export function createPeerLinks(
  options: PeerLinksOptions,
  parts: PeerLinksParts,
  events: PeerLinksEvents,
): ServerPeerLinks {
  return new DirectedPeerLinks(options, parts, events);
}

/** A link with a node that is no member any more stays for so many election timeouts: the leader tells it so. See raft's peers.ts. */
const leavingTimeouts = 8;
/** Each peer dials two links, and may make them anew before the old ones are found dead. Who the peers are changes, their number is bounded. */
const callersMax = 8 * membershipBounds.membersMax + 16;

class DirectedPeerLinks implements ServerPeerLinks, PeerOwner {
  private readonly options: PeerLinksOptions;
  private readonly parts: PeerLinksParts;
  private readonly events: PeerLinksEvents;
  private readonly memory = new PeerMemory();
  private readonly peers: LinkedPeers;
  private readonly callers = new Set<IncomingLink>();
  private readonly acceptor: Acceptor;
  private readonly roster: PeerRoster;
  private readonly told = new Map<NodeId, string>();
  private durable: DurableFacts | null = null;
  private readonly sweeper: Sweeper;

  constructor(options: PeerLinksOptions, parts: PeerLinksParts, events: PeerLinksEvents) {
    this.options = options;
    this.parts = parts;
    this.events = events;
    this.roster = new PeerRoster(options.self.id, options.peers);
    const process = parts.drawName();
    const { secret, bufferedBytesMax, electionTimeoutMs } = options;
    const handshakeMs = Math.min(Math.max(2 * electionTimeoutMs, 500), 3_000);
    const leavingMs = leavingTimeouts * electionTimeoutMs;
    const peerOptions = { process, secret, handshakeMs, bufferedBytesMax, leavingMs };
    this.peers = new LinkedPeers(peerOptions, parts, this.roster, this, (id) => this.told.delete(id));
    this.peers.match();
    const periodMs = Math.min(Math.max(4 * electionTimeoutMs, 250), 2_000);
    this.sweeper = new Sweeper(parts.clock, periodMs, () => this.peers.sweep());
    this.acceptor = parts.transport.createAcceptor({ process, secret, socketsMax: callersMax }, (call, attach) => {
      this.callers.add(new IncomingLink({ ...call, helloMs: 5_000 }, attach, parts.clock, this.incomingEvents));
    });
  }

  async start(): Promise<number> {
    const port = await this.acceptor.listen(this.options.self.listen);
    this.peers.start();
    this.sweeper.start();
    return port;
  }

  send(to: NodeId, messages: readonly Message[]): void {
    const peer = this.peers.get(to);
    // Not before both are formed, and known to each other as members of one cluster.
    if (peer !== undefined && this.isMember(peer.dialledHello)) peer.send(messages);
  }

  met(): ReadonlyMap<NodeId, MetPeer> {
    const met = new Map<NodeId, MetPeer>();
    for (const peer of this.peers) {
      const { dialledHello: dialled, callerHello: caller } = peer;
      if (dialled === null || caller === null) continue;
      // A restart in between: wait until both links speak of the same process.
      if (dialled.instance !== caller.instance || dialled.clusterId !== caller.clusterId) continue;
      const versions = commonRange(dialled.versions, caller.versions);
      met.set(peer.id, { instance: dialled.instance, clusterId: dialled.clusterId, versions });
    }
    return met;
  }

  becomeFormed(facts: FormedFacts, durable: DurableFacts): void {
    this.roster.formed = facts;
    this.roster.committed = facts.configuration;
    this.durable = durable;
    this.peers.renew();
    this.peers.match();
  }

  noteConfiguration(inForce: Configuration, committed: Configuration): void {
    const { formed } = this.roster;
    if (formed === null) throw new Error("only a formed node has a configuration");
    this.roster.formed = { ...formed, configuration: inForce };
    const isSettled = this.roster.committed !== committed;
    this.roster.committed = committed;
    if (isSettled) this.judgeOwn(committed);
    this.peers.match();
    if (isSettled && this.peers.isStarted) for (const peer of this.peers) this.judgeAgain(peer, committed);
  }

  notePromise(peer: NodeId, promise: PeerPromise): void {
    this.memory.notePromise(peer, promise);
  }

  figures(): { readonly links: number; readonly bufferedBytes: number } {
    let links = 0;
    let bufferedBytes = 0;
    for (const peer of this.peers) {
      links += peer.linkCount;
      bufferedBytes += peer.bufferedBytes;
    }
    return { links, bufferedBytes };
  }

  async close(): Promise<void> {
    this.stop();
    for (const peer of this.peers) peer.close();
    for (const caller of this.callers) caller.close();
    // Goodbyes are flushed by then, or never.
    const deadlineMs = this.parts.clock.monotonicMs() + 500;
    while ((this.callers.size > 0 || this.peers.hasOpenLink) && this.parts.clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => this.parts.clock.setTimer(5, resolve));
    }
    await this.abandon();
  }

  async abandon(): Promise<void> {
    this.stop();
    const closed = this.acceptor.close();
    for (const peer of this.peers) peer.abandon();
    for (const caller of this.callers) caller.abandon();
    await closed;
  }

  private stop(): void {
    this.sweeper.stop();
    this.peers.stop();
    this.acceptor.stopListening();
  }

  // What the peers ask and tell.

  hello(to: NodeId): PeerHello {
    const { self, cluster } = this.options;
    const { peer } = self;
    return {
      kind: "hello",
      protocol: limits.protocolVersion,
      cluster,
      from: self.id,
      to,
      instance: self.instance,
      clusterId: this.roster.formed?.clusterId ?? null,
      boot: self.boot,
      term: this.durable?.term ?? null,
      last: this.durable?.last ?? null,
      versions: self.versions,
      ...(peer === undefined ? {} : { peer }),
    };
  }

  judge(hello: PeerHello, process: string, expected: NodeId | null): HelloRefusal | null {
    const { options, roster, memory } = this;
    const { self, cluster, joins = null } = options;
    const { fileIds, formed, committed } = roster;
    const clusterVersion = this.parts.clusterVersion();
    const refusal = judgeHello(
      { self: self.id, cluster, fileIds, formed, committed, joins, memory, clusterVersion },
      hello,
      process,
      expected,
    );
    if (refusal === null) this.memory.noteHello(hello, process);
    else this.tell(hello.from, `refused ${hello.from}: ${refusal.problem}`, { peer: hello.from, code: refusal.code });
    return refusal;
  }

  onLink(peer: Peer, lane: Lane, direction: "out" | "in", hello: PeerHello): void {
    this.told.delete(peer.id);
    if (lane === "control") this.parts.logger.info({ peer: peer.id, direction, boot: hello.boot }, "linked");
    if (lane === "control" && direction === "out") this.handOn(peer, hello);
    if (this.isMember(hello)) this.events.onPeerReset(peer.id);
    if (lane === "control") this.events.onMet();
  }

  /**
   * What an unformed member lacks, once a committed configuration names it: an entry that is not committed may be cut off again, and with it
   * what binds this id to that directory. Two directories under one id would be taken for one voter.
   */
  private handOn(peer: Peer, hello: PeerHello): void {
    const { formed, committed } = this.roster;
    if (formed === null || hello.clusterId !== null) return;
    const configuration = committed ?? formed.configuration;
    if (!instancesOf(configuration, hello.from).includes(hello.instance)) return;
    this.parts.logger.info({ peer: peer.id }, "handing the first configuration on");
    peer.sendFrame({ kind: "formed", ...formed, configuration });
  }

  /** A link that stood before its id was bound to another directory belongs to nobody any more; who is named now gets what it lacks. */
  private judgeAgain(peer: Peer, committed: Configuration): void {
    const { dialledHello, callerHello } = peer;
    const settled = instancesOf(committed, peer.id);
    const isOther = (hello: PeerHello | null): boolean => hello !== null && !settled.includes(hello.instance);
    if (settled.length > 0 && (isOther(dialledHello) || isOther(callerHello))) peer.renew();
    else if (dialledHello !== null) this.handOn(peer, dialledHello);
  }

  /** Its own log says what a peer's refusal would; and with no peer up nobody else does. */
  private judgeOwn(committed: Configuration): void {
    const { id, instance } = this.options.self;
    const instances = instancesOf(committed, id);
    const [other] = instances;
    if (other !== undefined && !instances.includes(instance)) this.events.onReplaced(other);
  }

  onRefused(from: NodeId, refusal: HelloRefusal, hello: PeerHello | null): void {
    this.tell(from, `${from} refuses this node: ${refusal.problem}`, { peer: from, code: refusal.code });
    this.events.onRefused({ from, ...refusal }, hello !== null && hello.clusterId !== null);
  }

  onGone(peer: NodeId): void {
    this.parts.logger.warn({ peer }, `${peer}'s process is gone`);
    if (this.roster.formed !== null) this.events.onPeerGone(peer);
  }

  // Calls from peers.

  private readonly incomingEvents: IncomingEvents = {
    hello: (to) => this.hello(to),
    judge: (hello, process) => this.judge(hello, process, null),
    onAccepted: (link, hello) => {
      if (!this.roster.addresses().has(hello.from)) this.admit(hello);
      // Without an address there is no way to call it back.
      return this.peers.get(hello.from)?.onIncoming(link, hello) ?? false;
    },
    onRefused: (_, refusal, hello) => this.onRefused(hello.from, refusal, hello),
    onMessages: (_, hello, messages) => {
      if (!this.isMember(hello)) return;
      for (const message of messages) this.memory.noteMessage(hello.from, message);
      this.events.onMessages(hello.from, messages);
    },
    onFormed: (_, hello, frame) => {
      if (this.roster.formed === null) this.events.onFormed(hello.from, frame);
    },
    onClosed: (link, hello, saidGoodbye, problem) => {
      this.callers.delete(link);
      if (hello === null)
        this.parts.logger.debug({ remote: link.options.remote, reason: problem }, "a caller left without a hello");
      else this.peers.get(hello.from)?.onIncomingClosed(link, saidGoodbye, problem);
    },
  };

  /** It belongs to the cluster, though this node can't know it from its log yet. */
  private admit({ from, peer }: PeerHello): void {
    if (peer === undefined) return;
    this.roster.admit(from, peer);
    this.peers.match();
  }

  /** Raft's messages pass only between two nodes that are formed into one cluster. */
  private isMember(hello: PeerHello | null): boolean {
    return hello !== null && this.roster.formed !== null && hello.clusterId === this.roster.formed.clusterId;
  }

  /** A refusal repeats with every dial; the log has it once. */
  private tell(peer: NodeId, text: string, facts: object): void {
    if (this.told.get(peer) === text) return;
    this.told.set(peer, text);
    this.parts.logger.error(facts, text);
  }
}

/** Of one process or of two, one after the other: what both can run, or nothing that the later one can't. */
function commonRange(a: VersionRange, b: VersionRange): VersionRange {
  return { min: Math.max(a.min, b.min), max: Math.min(a.max, b.max) };
}
