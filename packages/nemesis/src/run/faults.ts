/** Carries out the steps of a schedule. */
import { setTimeout as sleep } from "node:timers/promises";
import { machineMs } from "../clock.js";
import type { MachineFault } from "../machine/machine.js";
import type { Party } from "../network/network.js";
import { ProxyNetwork } from "../network/proxy/proxy-network.js";
import type { WorkerProcess } from "../processes/worker.js";
import type { Action, PauseKind, Step } from "../scenario/scenario.js";
import { until } from "../until.js";
import type { DirectedPair } from "./links.js";
import { Cast } from "./roles.js";
import type { World } from "./world.js";

/** A fault that has begun. */
export interface BegunFault {
  readonly text: string;
  /** Ends it, once. */
  end(): Promise<FaultProof>;
}

export interface FaultProof {
  /** On the ways that it had cut, meanwhile; null when it cut none. */
  readonly bytesPassed: number | null;
}

const noProof: FaultProof = { bytesPassed: null };
/** For a worker to come to the gate: it must get a lock first. */
const gateMs = 30_000;
/** Enough to cut all ways of a worker that waits for it. */
const cutMs = 1_500;
/** A node that was restarted serves, or follows. */
const rejoinMs = 60_000;

export class Faults {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  async begin({ action, forSeconds }: Step): Promise<BegunFault> {
    const begun = await this.beginAction(action, (forSeconds ?? 0) * 1_000);
    this.world.tellQuorum();
    this.world.recorder.event({ kind: "fault", fault: begun.text });
    return {
      text: begun.text,
      end: async () => {
        const proof = await begun.end();
        this.world.tellQuorum();
        this.world.recorder.event({ kind: "fault", fault: `end of ${begun.text}` });
        return proof;
      },
    };
  }

  private async beginAction(action: Action, forMs: number): Promise<BegunFault> {
    const cast = await Cast.of(this.world);
    switch (action.kind) {
      case "cut":
        return this.cut(await cast.waysOf(action.ways));
      case "split":
        return this.cut(await cast.waysBetween(action.groups));
      case "flap":
        return this.flap(await cast.waysOf(action.ways), action.upMs, action.downMs);
      case "shape":
        return this.shape(await cast.waysOf(action.ways), action);
      case "reset":
        return this.reset(await cast.waysOf(action.ways));
      case "halfClose":
        return this.halfClose(await cast.waysOf(action.ways));
      case "kill":
        return this.kill(await cast.partiesOf(action.who), action);
      case "terminate":
        return this.terminate(await cast.partiesOf(action.who));
      case "stop":
        return this.stop(await cast.partiesOf(action.who));
      case "roll":
        return this.roll(action.signal);
      case "crashLoop":
        return this.crashLoop(await cast.partiesOf(action.who), action.everyMs);
      case "pause":
        return this.pause(action.how, forMs);
      case "machine":
        return this.machine(await cast.partiesOf(action.who), action.fault);
      default:
        return action satisfies never;
    }
  }

  private async cut(pairs: readonly DirectedPair[]): Promise<BegunFault> {
    const { links } = this.world;
    await Promise.all(pairs.map((pair) => links.cut(pair)));
    const before = await Promise.all(pairs.map((pair) => links.bytesPassed(pair)));
    return {
      text: `cut ${waysText(pairs)}`,
      end: async () => {
        const after = await Promise.all(pairs.map((pair) => links.bytesPassed(pair)));
        await Promise.all(pairs.map((pair) => links.heal(pair)));
        return { bytesPassed: after.reduce((sum, bytes, at) => sum + bytes - (before[at] ?? 0), 0) };
      },
    };
  }

  private flap(pairs: readonly DirectedPair[], upMs: number, downMs: number): Promise<BegunFault> {
    const stop = new AbortController();
    const run = async (): Promise<number> => {
      let passed = 0;
      while (!stop.signal.aborted) {
        const cut = await this.cut(pairs);
        await sleep(downMs, undefined, { signal: stop.signal }).catch(() => undefined);
        passed += (await cut.end()).bytesPassed ?? 0;
        await sleep(upMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
      return passed;
    };
    const running = run();
    return Promise.resolve({
      text: `flap ${waysText(pairs)}: ${downMs} ms down, ${upMs} ms up`,
      end: async () => {
        stop.abort();
        return { bytesPassed: await running };
      },
    });
  }

  private async shape(
    pairs: readonly DirectedPair[],
    { shape }: Extract<Action, { readonly kind: "shape" }>,
  ): Promise<BegunFault> {
    const { links } = this.world;
    await Promise.all(pairs.map((pair) => links.shape(pair, shape)));
    const words = Object.entries(shape).map(([name, value]) => `${name} ${value}`);
    return {
      text: `${words.join(", ")} on ${waysText(pairs)}`,
      end: async () => {
        await Promise.all(pairs.map((pair) => links.shape(pair, null)));
        return noProof;
      },
    };
  }

  private async reset(pairs: readonly DirectedPair[]): Promise<BegunFault> {
    await Promise.all(pairs.map(({ from, to }) => this.world.parts.network.reset(from, to)));
    return once(`reset ${waysText(pairs)}`);
  }

  private halfClose(pairs: readonly DirectedPair[]): Promise<BegunFault> {
    const { network } = this.world.parts;
    if (!(network instanceof ProxyNetwork)) throw new Error("only a proxy can close one direction of a connection");
    for (const { from, to } of pairs) network.halfClose(from, to);
    return Promise.resolve(once(`half-close ${waysText(pairs)}`));
  }

  private async kill(
    parties: readonly Party[],
    { damage }: Extract<Action, { readonly kind: "kill" }>,
  ): Promise<BegunFault> {
    await Promise.all(parties.map((party) => this.processOf(party).kill()));
    const harm: string[] = [];
    if (damage !== null) {
      for (const party of parties) {
        const report = await this.world.parts.machine.damage(this.world.node(party).directory, damage);
        if (report.file === null) throw new Error(`nothing to damage at ${party}: ${report.what}`);
        harm.push(`${report.what} (${report.file})`);
      }
    }
    return {
      text: [`SIGKILL ${parties.join(", ")}`, ...harm].join("; "),
      end: async () => {
        await Promise.all(parties.map((party) => this.restart(party)));
        return noProof;
      },
    };
  }

  private async terminate(parties: readonly Party[]): Promise<BegunFault> {
    for (const party of parties) await this.world.node(party).stop(rejoinMs);
    return {
      text: `SIGTERM ${parties.join(", ")}`,
      end: async () => {
        await Promise.all(parties.map((party) => this.restart(party)));
        return noProof;
      },
    };
  }

  private stop(parties: readonly Party[]): Promise<BegunFault> {
    const { afflicted, recorder } = this.world;
    for (const party of parties) {
      afflicted.add(party);
      recorder.event({ kind: "paused", process: this.clientOf(party) });
      this.processOf(party).signal("SIGSTOP");
    }
    return Promise.resolve({
      text: `SIGSTOP ${parties.join(", ")}`,
      end: () => {
        for (const party of parties) {
          this.processOf(party).signal("SIGCONT");
          this.world.relieve(party);
          recorder.event({ kind: "resumed", process: this.clientOf(party) });
        }
        return Promise.resolve(noProof);
      },
    });
  }

  private async roll(signal: "SIGTERM" | "SIGKILL"): Promise<BegunFault> {
    for (const [id, node] of this.world.nodes) {
      if (signal === "SIGKILL") await node.kill();
      else await node.stop(rejoinMs);
      await this.restart(id);
      await until(`${id} is back`, rejoinMs, async () => {
        const status = await this.world.ask(id);
        return status !== null && status.leader !== null;
      });
    }
    return once(`${signal} to one node after the other`);
  }

  private crashLoop(parties: readonly Party[], everyMs: number): Promise<BegunFault> {
    const stop = new AbortController();
    let crashes = 0;
    const run = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        for (const party of parties) {
          await this.world.node(party).kill();
          crashes += 1;
          await this.world.startNode(party);
        }
        await sleep(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    };
    const running = run();
    return Promise.resolve({
      text: `SIGKILL and start ${parties.join(", ")} every ${everyMs} ms`,
      end: async () => {
        stop.abort();
        await running;
        this.world.recorder.event({ kind: "fault", fault: `${crashes} crashes` });
        return noProof;
      },
    });
  }

  /** Of whoever comes to the gate first. */
  private async pause(how: PauseKind, forMs: number): Promise<BegunFault> {
    const { world } = this;
    const caught = new Promise<WorkerProcess>((resolve) => {
      world.onGate = (worker) => {
        world.onGate = null;
        resolve(worker);
      };
    });
    const [name] = await (await Cast.of(world)).partiesOf(["holder"]);
    if (how === "store") return this.holdUpWrites(world.worker(name ?? ""), caught);
    const gates = {
      stop: { kind: "stop" },
      freeze: { kind: "block", ms: 5_000 },
      burn: { kind: "burn", ms: forMs },
    } as const;
    world.worker(name ?? "").command({ kind: "gate", action: gates[how] });
    const worker = await within(caught, gateMs, `${name} stands at the gate`);
    const { client } = worker;
    world.recorder.event({ kind: "paused", process: client });
    const target = { party: worker.name, pid: worker.pid, directory: worker.directory };
    if (how === "freeze") await world.parts.machine.begin(target, { kind: "frozen" });
    return {
      text: `${how} ${worker.name} between its look and its write`,
      end: async () => {
        if (how === "stop") worker.signal("SIGCONT");
        if (how === "freeze") await world.parts.machine.end(target, "frozen");
        world.recorder.event({ kind: "resumed", process: client });
        return noProof;
      },
    };
  }

  /** It goes on, loses its lock meanwhile for it is cut off the nodes too, and its writes arrive after that. */
  private async holdUpWrites(worker: WorkerProcess, caught: Promise<WorkerProcess>): Promise<BegunFault> {
    const { world } = this;
    // It waits at the gate while its way to the store is cut.
    worker.command({ kind: "gate", action: { kind: "block", ms: cutMs } });
    await within(caught, gateMs, `${worker.name} stands at the gate`);
    const toStore = { from: worker.name, to: "store" };
    const nodes = [...world.nodes.keys()].flatMap((id) => [
      { from: worker.name, to: id },
      { from: id, to: worker.name },
    ]);
    const cut = await this.cut([toStore, ...nodes]);
    return { text: `hold up the writes of ${worker.name}: ${cut.text}`, end: () => cut.end() };
  }

  private async machine(parties: readonly Party[], fault: MachineFault): Promise<BegunFault> {
    const { machine } = this.world.parts;
    const targets = parties.map((party) => {
      const { pid, directory } = this.processOf(party);
      return { party, pid, directory };
    });
    const bites = async (): Promise<number> => {
      const counts = await Promise.all(targets.map(({ party }) => machine.bites(party, fault.kind)));
      return counts.reduce((sum: number, count) => sum + (count ?? 1), 0);
    };
    const before = await bites();
    for (const target of targets) {
      await machine.begin(target, fault);
      if (fault.kind !== "wallJump") this.world.afflicted.add(target.party);
    }
    return {
      text: `${words(fault)} at ${parties.join(", ")}`,
      end: async () => {
        const isBitten = (await bites()) > before || !["diskFull", "slowSync", "failSync"].includes(fault.kind);
        if (!isBitten) this.world.problems.push(`${words(fault)} at ${parties.join(", ")} never bit`);
        for (const target of targets) {
          await machine.end(target, fault.kind);
          if (fault.kind !== "wallJump") this.world.relieve(target.party);
          if (this.world.nodes.has(target.party)) await this.restart(target.party);
        }
        return noProof;
      },
    };
  }

  private async restart(party: Party): Promise<void> {
    if (this.world.nodes.has(party)) await this.world.startNode(party);
    else if (!this.world.worker(party).isRunning) await this.world.worker(party).start();
  }

  private processOf(party: Party): {
    readonly pid: number;
    readonly directory: string;
    kill(): Promise<void>;
    signal(name: NodeJS.Signals): void;
  } {
    return this.world.nodes.get(party) ?? this.world.worker(party);
  }

  /** Its name in the history. */
  private clientOf(party: Party): string {
    return this.world.workers.get(party)?.client ?? party;
  }
}

function once(text: string): BegunFault {
  return { text, end: () => Promise.resolve(noProof) };
}

/** All ways between two as one, and those of clients to all nodes in short. */
function waysText(pairs: readonly DirectedPair[]): string {
  const keys = new Set(pairs.map(({ from, to }) => `${from} ${to}`));
  const told = pairs.flatMap(({ from, to }) => {
    if (!keys.has(`${to} ${from}`)) return [`${from} -> ${to}`];
    return from < to ? [`${from} <-> ${to}`] : [];
  });
  return told.join(", ");
}

function words(fault: MachineFault): string {
  const values = Object.entries(fault).filter(([name]) => name !== "kind");
  return [fault.kind, ...values.map(([, value]) => String(value))].join(" ");
}

async function within<Value>(promise: Promise<Value>, limitMs: number, what: string): Promise<Value> {
  let value: { readonly got: Value } | null = null;
  const wait = promise.then((got) => {
    value = { got };
  });
  const startMs = machineMs();
  while (value === null && machineMs() - startMs < limitMs) await Promise.race([wait, sleep(50)]);
  if (value === null) throw new Error(`not within ${limitMs} ms: ${what}`);
  return (value as { readonly got: Value }).got;
}
