/** Runs one golden conversation: commands, `----`, and what the nodes did. */
import { Cluster, generousLimits } from "./cluster.js";
import type { Packet } from "./cluster.js";
import { bytesOf, configurationOf } from "./codec.js";
import { entryOf } from "./solo.js";
import { configurationText, entriesText, messageText, outputLines, positionText, sendLines } from "./text.js";
import type { Entry, Index, RaftLimits, Term } from "../../src/index.js";

type Command = (args: readonly string[]) => void;

export class Conversation {
  #cluster: Cluster | null = null;
  #lines: string[] = [];
  #isQuiet = false;

  /** Runs a block of command lines; returns what is to be recorded. */
  run(block: readonly string[]): string[] {
    this.#lines = [];
    for (const line of block) {
      if (line.startsWith("#") || line.trim() === "") continue;
      const words = line.trim().split(/\s+/);
      this.#isQuiet = words[0] === "quietly";
      const [name, ...args] = this.#isQuiet ? words.slice(1) : words;
      const command = this.#commands[name ?? ""];
      if (command === undefined) throw new Error(`unknown command: ${line}`);
      command(args);
    }
    return this.#lines.length > 0 ? this.#lines : ["nothing"];
  }

  readonly #commands: Readonly<Record<string, Command>> = {
    /** cluster n1 n2 n3 [outgoing=..] [learners=..] [spare=..] [limit=value]: a new cluster, nothing elected; the spare are no members. */
    cluster: (args) => this.#begin(args),
    /** disk n1 term=3 vote=n2 1/1 2/2 3/3: what a node finds on its disk when it starts. */
    disk: ([id = "", ...rest]) => this.#fillDisk(id, rest),
    /** wait 120: time passes, deadlines are met, nothing is delivered. */
    wait: ([ms]) => this.#at().advance(Number(ms)),
    /** pass 1000: time passes from deadline to deadline, and everything is delivered. */
    pass: ([ms]) => void this.#at().run(Number(ms)),
    /** timeout n1: time passes until the next deadline of n1, and only n1 is ticked. */
    timeout: ([id = ""]) => this.#timeout(id),
    tick: ([id = ""]) => this.#at().step(id, { kind: "tick" }),
    /** deliver, or deliver n1>n2: what is in the network now, but not what comes of it. */
    deliver: ([link]) => this.#deliver(link),
    settle: () => this.#at().settle(),
    lose: ([link]) => this.#take(link),
    repeat: ([link = ""]) => this.#repeat(link),
    cut: (links) => links.forEach((link) => this.#at().cut.add(link)),
    isolate: ([id = ""]) => this.#isolate(id),
    heal: () => this.#at().cut.clear(),
    /** slow n1: its disk finishes nothing until `finish n1 [count]` or `fast n1`. */
    slow: ([id = ""]) => void this.#at().slowDisks.add(id),
    fast: ([id = ""]) => this.#fast(id),
    finish: ([id = "", count]) => this.#at().finishWrites(id, count === undefined ? undefined : Number(count)),
    propose: ([id = "", ...texts]) => texts.forEach((text) => this.#propose(id, text)),
    /** change n1 add=n4,n5 promote=n6 remove=n2 [forced] */
    change: ([id = "", ...parts]) => this.#change(id, parts),
    /** members n1: its configuration, and what it knows of its peers' logs. */
    members: (ids) => ids.forEach((id) => this.#showMembers(id)),
    confirm: ([id = ""]) => void this.#at().confirm(id),
    transfer: ([id = "", to]) => this.#at().step(id, { kind: "transfer", to: to ?? null }),
    gone: ([id = "", peer = ""]) => this.#at().step(id, { kind: "peerGone", peer }),
    reset: ([id = "", peer = ""]) => this.#at().step(id, { kind: "peerReset", peer }),
    snapshot: ([id = ""]) => void this.#at().takeSnapshot(id),
    read: ([id = ""]) => void this.#at().answerRead(id),
    crash: ([id = ""]) => this.#at().node(id).crash(),
    restart: ([id = ""]) => this.#at().restart(id),
    show: (ids) => this.#show(ids),
    entries: ([id = ""]) => this.#showLog(id),
    network: () =>
      this.#at().packets.forEach(({ from, to, message }) => this.#say(`${from} -> ${to} ${messageText(message)}`)),
  };

  #begin(args: readonly string[]): void {
    const ids = args.filter((arg) => !arg.includes("="));
    const options = new Map(args.filter((arg) => arg.includes("=")).map((arg) => arg.split("=") as [string, string]));
    const listed = (name: string): string[] => (options.get(name) ?? "").split(",").filter((id) => id !== "");
    const learners = listed("learners");
    const outgoing = listed("outgoing");
    const limits: Record<string, number> = {};
    for (const name of Object.keys(generousLimits)) {
      limits[name] = Number(options.get(name) ?? generousLimits[name as keyof RaftLimits]);
    }
    const cluster = new Cluster({
      ids: [...new Set([...ids, ...outgoing, ...learners, ...listed("spare")])],
      configuration: configurationOf(ids, outgoing, learners),
      seed: Number(options.get("seed") ?? 1),
      electionTimeoutMsMin: 500,
      heartbeatMs: 100,
      diskStallMs: 1_000,
      limits: limits as unknown as RaftLimits,
    });
    cluster.onOutput = (node, output) => outputLines(node, output).forEach((line) => this.#say(line));
    cluster.onSend = (node, messages, isLate) => sendLines(node, messages, isLate).forEach((line) => this.#say(line));
    this.#cluster = cluster;
    this.#say(`${[...cluster.nodes.keys()].join(" ")} are up`);
  }

  #fillDisk(id: string, args: readonly string[]): void {
    const { disk } = this.#at().node(id);
    for (const arg of args) {
      if (arg.startsWith("term=")) disk.hardState = { ...disk.hardState, term: Number(arg.slice(5)) as Term };
      else if (arg.startsWith("vote=")) disk.hardState = { ...disk.hardState, votedFor: arg.slice(5) };
      else disk.entries.push(this.#entryFor(disk.entries.at(-1)?.chain ?? disk.base.chain, arg));
    }
    this.#at().node(id).restart();
  }

  /**
   * "3/2" is entry 3 of term 2, "3/2=n1,n2;n1,n3;n4;n5" one with a configuration (voters, outgoing, learners, removed): the same text in two
   * logs is the same entry.
   */
  #entryFor(previousChain: number, text: string): Entry {
    const [position = "", configuration] = text.split("=");
    const [index, term] = position.split("/").map(Number) as [number, number];
    return configuration === undefined
      ? entryOf(index, term, previousChain, "command", bytesOf(`old${index}`))
      : entryOf(index, term, previousChain, "configuration", bytesOf(configuration));
  }

  #timeout(id: string): void {
    const cluster = this.#at();
    const { raft } = cluster.node(id);
    // The first event of a node only starts its clock.
    if (raft.nextDeadlineMs() === 0) cluster.step(id, { kind: "tick" });
    cluster.nowMs = Math.max(cluster.nowMs, raft.nextDeadlineMs());
    cluster.step(id, { kind: "tick" });
  }

  #deliver(link: string | undefined): void {
    for (const packet of this.#take(link)) this.#at().deliver(packet);
  }

  #take(link: string | undefined): Packet[] {
    const cluster = this.#at();
    const taken = cluster.packets.filter(({ from, to }) => link === undefined || link === `${from}>${to}`);
    cluster.packets = cluster.packets.filter((packet) => !taken.includes(packet));
    return taken;
  }

  #repeat(link: string): void {
    const cluster = this.#at();
    const repeated = cluster.packets.filter(({ from, to }) => link === `${from}>${to}`);
    cluster.packets.push(...repeated);
  }

  #isolate(id: string): void {
    for (const other of this.#at().nodes.keys()) {
      this.#at().cut.add(`${id}>${other}`);
      this.#at().cut.add(`${other}>${id}`);
    }
  }

  #fast(id: string): void {
    this.#at().slowDisks.delete(id);
    this.#at().finishWrites(id);
  }

  /** "!text" is from the reserve, "text@3" was decided in term 3. */
  #propose(id: string, text: string): void {
    const [payload = "", term] = text.replace("!", "").split("@");
    const number = this.#at().propose(id, payload, text.startsWith("!"), term === undefined ? null : Number(term));
    this.#say(`proposal ${number} is ${payload}`);
  }

  #change(id: string, parts: readonly string[]): void {
    const listed = (name: string): string[] => {
      const part = parts.find((each) => each.startsWith(`${name}=`));
      return part === undefined ? [] : part.slice(name.length + 1).split(",");
    };
    const ids = { add: listed("add"), promote: listed("promote"), remove: listed("remove") };
    this.#at().changeMembers(id, ids, parts.includes("forced"));
  }

  #showMembers(id: string): void {
    const { configuration, configurationIndex, isChanging, isRemoved, peers } = this.#at().node(id).raft.status();
    const state = `${isChanging ? ", changing" : ""}${isRemoved ? ", removed" : ""}`;
    this.#say(`${id} at ${configurationIndex}${state}: ${configurationText(configuration)}`);
    for (const peer of peers) {
      const facts = `${peer.state}, ${peer.behindEntries} behind${peer.isCaughtUp ? ", caught up" : ""}`;
      this.#say(`  ${peer.id} ${peer.membership}: ${facts}`);
    }
  }

  #show(ids: readonly string[]): void {
    for (const { id, raft, isUp } of this.#at().nodes.values()) {
      if (ids.length > 0 && !ids.includes(id)) continue;
      const { role, term, votedFor, leader, last, commitIndex, persistedIndex, peers } = raft.status();
      const facts = `term=${term} vote=${votedFor ?? "none"} leader=${leader ?? "none"} last=${positionText(last)} commit=${commitIndex} durable=${persistedIndex}`;
      const progress = peers.map((peer) => ` ${peer.id}:${peer.state}:${peer.matchIndex}<${peer.nextIndex}`).join("");
      this.#say(`${id} ${isUp ? role : "down"} ${facts}${progress}`);
    }
  }

  #showLog(id: string): void {
    const { raft } = this.#at().node(id);
    const entries: Entry[] = [];
    for (let index = raft.logBase.position.index + 1; index <= raft.lastIndex; index += 1) {
      entries.push(raft.entryAt(index as Index) as Entry);
    }
    this.#say(`${id} base ${positionText(raft.logBase.position)} entries ${entriesText(entries)}`);
  }

  #say(line: string): void {
    if (!this.#isQuiet) this.#lines.push(line);
  }

  #at(): Cluster {
    if (this.#cluster === null) throw new Error("a conversation begins with cluster");
    return this.#cluster;
  }
}
