/** All ways of a run, the network's and those to the store. Several faults may cut one way: it is whole when the last of them ends. */
import type { Network, Party, Shape } from "../network/network.js";
import { store } from "../store/store-ways.js";
import type { StoreWays } from "../store/store-ways.js";

export interface DirectedPair {
  readonly from: Party;
  readonly to: Party;
}

export class Links {
  private readonly network: Network;
  private readonly storeWays: StoreWays;
  private readonly cuts = new Map<string, number>();
  private readonly shaped = new Set<string>();

  constructor(network: Network, storeWays: StoreWays) {
    this.network = network;
    this.storeWays = storeWays;
  }

  async cut({ from, to }: DirectedPair): Promise<void> {
    const key = keyOf(from, to);
    const count = this.cuts.get(key) ?? 0;
    this.cuts.set(key, count + 1);
    if (count > 0) return;
    if (isToStore(from, to)) this.storeWays.of(from, to).cut();
    else await this.network.cut(from, to);
  }

  async heal({ from, to }: DirectedPair): Promise<void> {
    const key = keyOf(from, to);
    const count = this.cuts.get(key) ?? 0;
    if (count > 1) this.cuts.set(key, count - 1);
    else this.cuts.delete(key);
    if (count !== 1) return;
    if (isToStore(from, to)) this.storeWays.of(from, to).heal();
    else await this.network.heal(from, to);
  }

  async shape({ from, to }: DirectedPair, shape: Shape | null): Promise<void> {
    if (shape === null) this.shaped.delete(keyOf(from, to));
    else this.shaped.add(keyOf(from, to));
    if (isToStore(from, to)) this.storeWays.of(from, to).shape(shape);
    else await this.network.shape(from, to, shape);
  }

  async bytesPassed({ from, to }: DirectedPair): Promise<number> {
    return isToStore(from, to) ? this.storeWays.of(from, to).bytesPassed : this.network.bytesPassed(from, to);
  }

  /** Neither cut nor shaped, both ways. */
  areWhole(one: Party, other: Party): boolean {
    return [keyOf(one, other), keyOf(other, one)].every((key) => !this.cuts.has(key) && !this.shaped.has(key));
  }
}

function isToStore(from: Party, to: Party): boolean {
  return from === store || to === store;
}

function keyOf(from: Party, to: Party): string {
  return `${from} ${to}`;
}
