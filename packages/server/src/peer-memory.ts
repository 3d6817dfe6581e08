/**
 * What each peer has promised to this process, in memory: an old copy of its directory holds less, and would break its word. A node
 * learns this only from what it has seen itself, so an old copy isn't always found; a found one is certain.
 */
import type { Message, NodeId, Position } from "@holdfast/raft";
import type { PeerHello } from "@holdfast/wire";

export interface PeerPromise {
  /** A term that the peer had made durable. */
  readonly term: number;
  /** A log position that it had made durable in that term. */
  readonly last: Position;
}

interface Known {
  readonly instance: string;
  boot: number;
  /** Drawn at random by each process: two processes with one boot number run on two copies of one directory. */
  process: string;
  /** It was formed: it can't be unformed again. */
  isFormed: boolean;
  term: number;
  last: Position | null;
}

export class PeerMemory {
  private readonly known = new Map<NodeId, Known>();

  /** A hello that was accepted. */
  noteHello(hello: PeerHello, process: string): void {
    const known = this.recordFor(hello, process);
    known.boot = hello.boot;
    known.process = process;
    if (hello.clusterId !== null) known.isFormed = true;
    if (hello.term !== null) advanceTerm(known, hello.term);
  }

  /** A peer's append acknowledgement: its log was durable up to there, in that term. */
  notePromise(peer: NodeId, promise: PeerPromise): void {
    const known = this.known.get(peer);
    if (known === undefined) return;
    advanceTerm(known, promise.term);
    if (promise.term < known.term) return;
    if (known.last === null || comparePositions(promise.last, known.last) > 0) known.last = promise.last;
  }

  /** Votes, vote requests and append acknowledgements leave a node only when its term is durable. Other messages may be ahead of the disk. */
  noteMessage(peer: NodeId, message: Message): void {
    if (message.kind !== "vote" && message.kind !== "voteAnswer" && message.kind !== "appendAccepted") return;
    const known = this.known.get(peer);
    if (known !== undefined) advanceTerm(known, message.term);
  }

  /** Why the sender of this hello must be an old copy; null when nothing speaks for it. */
  problemWith(hello: PeerHello, process: string): string | null {
    const known = this.known.get(hello.from);
    if (known === undefined || known.instance !== hello.instance) return null;
    if (hello.boot < known.boot) return `this is its start ${hello.boot}, and start ${known.boot} was seen before`;
    if (hello.boot === known.boot) {
      // The same process again: what it said of its disk at its start says nothing new. A proxy in between may have taken its name away.
      if (process === known.process || process === "" || known.process === "") return null;
      return `two processes run as its start ${hello.boot}: one of them has a copy of the directory`;
    }
    if (hello.clusterId === null) return known.isFormed ? "it was formed before, and now it isn't" : null;
    if (hello.term === null || hello.last === null) return null;
    if (hello.term < known.term) return `its term is ${hello.term}, and it has promised ${known.term}`;
    // In a later term the tail of a log may rightly be cut: only in the same one does a shorter log break a promise.
    if (hello.term === known.term && known.last !== null && comparePositions(hello.last, known.last) < 0) {
      return `its log ends at index ${hello.last.index}, and it has promised index ${known.last.index}`;
    }
    return null;
  }

  private recordFor(hello: PeerHello, process: string): Known {
    const known = this.known.get(hello.from);
    if (known !== undefined && known.instance === hello.instance) return known;
    const fresh = { instance: hello.instance, boot: hello.boot, process, isFormed: false, term: 0, last: null };
    this.known.set(hello.from, fresh);
    return fresh;
  }
}

function advanceTerm(known: Known, term: number): void {
  if (term <= known.term) return;
  known.term = term;
  known.last = null;
}

function comparePositions(a: Position, b: Position): number {
  return a.term - b.term || a.index - b.index;
}
