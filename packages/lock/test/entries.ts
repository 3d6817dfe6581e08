import type { Command } from "../src/index.js";
import { Model } from "./model.js";
import { Player } from "./player.js";
import type { Step } from "./player.js";

export interface Entry {
  readonly index: number;
  readonly command: Command;
}

/** Steps are played against the model, which tells the player what there is to release. */
export function entriesOf(steps: readonly Step[]): Entry[] {
  const model = new Model();
  const player = new Player(model);
  return steps.map((step) => {
    const entry = player.next(step);
    player.note(model.apply(entry.index, entry.command));
    return entry;
  });
}
