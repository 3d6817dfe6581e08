/** Faults that are planned and those that are in force, and what is left of them in the end. */
import type { SimulatedNode } from "../node/simulated-node.js";
import { figureOf } from "./bites.js";
import type { PlannedFault } from "./fault-kinds.js";
import { beginFault, targetsOf } from "./faults.js";
import type { Undo } from "./faults.js";
import { Core } from "./core.js";
import type { World } from "./world.js";

export class Faults {
  readonly #world: World;
  readonly #undos = new Map<PlannedFault, Undo>();

  constructor(world: World) {
    this.#world = world;
  }

  begin(faults: readonly PlannedFault[]): void {
    for (const [position, fault] of faults.entries()) {
      this.#world.scheduler.at(fault.atMs, `fault ${fault.kind}`, () => this.#start(fault, position));
    }
  }

  /**
   * From now on a majority is well: it runs, hears one another, can write, and its clocks keep to the bound. The others stay as they are for
   * ever, or get worse; or all are healed, if the plan says so. Returns the healthy ones.
   */
  endInCore(): Core {
    const world = this.#world;
    world.areFaultsOver = true;
    const core = new Set(this.#drawCore());
    const members = new Set(world.members.nodes);
    const others = [...members].filter((node) => !core.has(node));
    const frozen = others.map((node) => ({ node, wasRunning: node.isRunning }));
    // What a fault has begun ends for all; then those outside are broken anew, in ways that last.
    for (const undo of this.#undos.values()) undo();
    this.#undos.clear();
    world.healNetwork();
    for (const node of core) this.#mend(node);
    // Those that wait to be added, and those that were removed and don't know it yet.
    for (const node of world.nodes) if (node.isRunning && !members.has(node)) this.#mend(node);
    for (const { node, wasRunning } of frozen) this.#breakForEver(node, wasRunning, core);
    for (const client of world.clientIds()) world.process(client)?.resume();
    world.counts.add(others.length === 0 ? "healed: all" : "healed: a core");
    world.recorder.tell("world", `healed: ${[...core].map(({ id }) => id).join(" ")}`);
    return new Core(world, core, others);
  }

  /** A majority, whichever configuration will come out of a change that is under way; at times more. */
  #drawCore(): readonly SimulatedNode[] {
    const { members, plan } = this.#world;
    const random = this.#world.stream("core");
    const able = random.shuffle(members.nodes.filter((node) => !node.isSpoilt));
    if (plan.healsAll) return able;
    const [known] = random.shuffle(members.firstMembers);
    const ordered = known === undefined ? able : [known, ...able.filter((node) => node !== known)];
    let size = 1;
    while (size < ordered.length && !members.isQuorum((node) => ordered.slice(0, size).includes(node))) size += 1;
    return ordered.slice(0, size + random.integer(2));
  }

  #start(fault: PlannedFault, position: number): void {
    const world = this.#world;
    if (world.areFaultsOver) return;
    world.counts.add(`fault: ${fault.kind}`);
    const targets = targetsOf(world, fault);
    const before = figureOf(fault.kind, world, targets);
    const noteBite = (): void => {
      if (figureOf(fault.kind, world, targets) > before) world.counts.add(`bit: ${fault.kind}`);
    };
    const undo = beginFault(world, fault, position, targets);
    const text = `${fault.kind} for ${fault.lastsMs} ms`;
    world.recorder.tell("fault", text);
    world.recorder.emit({ kind: "fault", fault: text });
    // A fault without an end of its own bites at once, or soon.
    if (undo === null) {
      world.after(fault.lastsMs + world.plan.timing.electionTimeoutMs, noteBite);
      return;
    }
    this.#undos.set(fault, undo);
    world.after(fault.lastsMs, () => {
      noteBite();
      if (!this.#undos.delete(fault)) return;
      world.recorder.tell("fault", `${fault.kind} ends`);
      undo();
    });
  }

  #mend(node: SimulatedNode): void {
    const world = this.#world;
    world.mendDisk(node);
    node.disk.mend();
    node.disarm();
    node.isKeptUp = true;
    node.process?.resume();
    if (Math.abs(node.rate - 1) > world.plan.world.driftMax) world.processes.setRate(node.id, 1);
    node.start();
  }

  #breakForEver(node: SimulatedNode, wasRunning: boolean, core: ReadonlySet<SimulatedNode>): void {
    const world = this.#world;
    const random = world.stream(`broken ${node.id}`);
    const evil = wasRunning ? random.integer(5) : 0;
    world.counts.add(`for ever: ${["dead", "paused", "deaf", "mute", "flapping"][evil] ?? ""}`);
    if (evil === 0) world.crash(node, "process");
    else if (evil === 1) world.processes.pause(node.id, 1e9);
    else if (evil === 4) this.#flap(node, core);
    else for (const { id } of core) world.cut(evil === 2 ? id : node.id, evil === 2 ? node.id : id);
    if (evil === 0) node.refusedFor ??= "left dead";
  }

  #flap(node: SimulatedNode, core: ReadonlySet<SimulatedNode>): void {
    const world = this.#world;
    const random = world.stream(`flapping ${node.id}`);
    const { electionTimeoutMs } = world.plan.timing;
    let undos: Undo[] = [];
    const step = (): void => {
      const isCut = undos.length > 0;
      for (const undo of undos) undo();
      undos = isCut ? [] : [...core].flatMap(({ id }) => [world.cut(id, node.id), world.cut(node.id, id)]);
      world.after(random.logUniform(0.2, 3) * electionTimeoutMs, step);
    };
    step();
  }
}
