/** What befalls any process, of a node or of a client: it is paused, its machine sleeps, its clocks go wrong. */
import type { SimulatedProcess } from "../process.js";
import type { World } from "./world.js";

export class Processes {
  readonly #world: World;
  /** Clients' machines that have lost their power. */
  readonly #dark = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Its machine has lost its power: no sleep that ends turns it on again. */
  noteDark(id: string): void {
    this.#dark.add(id);
  }

  pause(id: string, ms: number): void {
    const process = this.#world.process(id);
    if (process === null || process.isPaused) return;
    this.#world.recorder.emit({ kind: "paused", process: id });
    process.pause(ms);
    this.#tellWhenAwake(id, process, ms);
  }

  suspend(id: string, ms: number): void {
    const world = this.#world;
    const process = world.process(id);
    if (process === null || process.isPaused) return;
    world.recorder.emit({ kind: "paused", process: id });
    process.suspend(ms);
    this.#tellWhenAwake(id, process, ms);
    // Its machine is off, too: the others' frames wait.
    const place = world.network.place(id);
    const asleep = (): number => world.network.asleep((from, to) => from === id || to === id);
    const before = asleep();
    place.turnOff();
    world.after(ms, () => {
      if (asleep() > before) world.counts.add("frames waited for a suspended machine");
      // A node that has died meanwhile turns its machine on by its next start.
      const isDark = process.isKilled && (world.node(id) !== null || this.#dark.has(id));
      if (!isDark) place.turnOn();
    });
  }

  setRate(id: string, rate: number): void {
    const world = this.#world;
    const node = world.node(id);
    const process = world.process(id);
    if (process?.isPaused === true) return;
    if (node !== null) node.setRate(rate);
    else process?.setRate(rate);
    world.counts.add("clock rate changed");
    world.recorder.emit({ kind: "clockRate", process: id, rate });
  }

  jumpWall(id: string, ms: number): void {
    this.#world.process(id)?.jumpWall(ms);
    this.#world.counts.add("wall clock jumped");
  }

  #tellWhenAwake(id: string, process: SimulatedProcess, ms: number): void {
    const world = this.#world;
    let isTold = false;
    const tell = (): void => {
      if (!isTold) world.recorder.emit({ kind: "resumed", process: id });
      isTold = true;
    };
    process.whenAwake(() => {
      tell();
      if (process.thawed > 0) world.counts.add("something came during a pause");
    });
    // The next process of that name may live already.
    world.after(ms, () => {
      if (process.isKilled) tell();
    });
  }
}
