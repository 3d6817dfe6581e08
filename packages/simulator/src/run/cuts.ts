/** Ways that are cut, each as often as a fault has cut it. */
import type { Network } from "../network/index.js";
import type { Undo } from "./faults.js";

/** A cut that is in force. */
interface Cut {
  readonly from: string;
  readonly to: string;
  readonly undo: Undo;
}

export class Cuts {
  readonly #network: Network;
  readonly #onChange: () => void;
  readonly #cuts = new Set<Cut>();

  constructor(network: Network, onChange: () => void) {
    this.#network = network;
    this.#onChange = onChange;
  }

  cut(from: string, to: string): Undo {
    const cut: Cut = { from, to, undo: this.#network.cut(from, to) };
    this.#cuts.add(cut);
    this.#onChange();
    return () => {
      if (!this.#cuts.delete(cut)) return;
      cut.undo();
      this.#onChange();
    };
  }

  isCut(from: string, to: string): boolean {
    for (const cut of this.#cuts) if (cut.from === from && cut.to === to) return true;
    return false;
  }

  /** Whatever is cut is whole again. */
  heal(): void {
    for (const cut of this.#cuts) cut.undo();
    this.#cuts.clear();
    this.#onChange();
  }
}
