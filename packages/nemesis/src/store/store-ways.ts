/** A proxy between each worker and the store: a write can leave in time and arrive after the lease. */
import type { Party } from "../network/network.js";
import { Lane } from "../network/proxy/lane.js";
import type { Way } from "../network/proxy/way.js";
import { Ways } from "../network/proxy/way.js";

export const store: Party = "store";

export class StoreWays {
  private readonly ways: Ways = new Ways();
  private readonly lanes: ReadonlyMap<Party, Lane>;

  private constructor(lanes: ReadonlyMap<Party, Lane>, ways: Ways) {
    this.lanes = lanes;
    this.ways = ways;
  }

  /** `listenHost`: where workers reach the harness. */
  static async open(listenHost: string, storePort: number, workers: readonly Party[]): Promise<StoreWays> {
    const ways = new Ways();
    const lanes = new Map<Party, Lane>();
    for (const worker of workers) {
      const ends = { there: ways.of(worker, store), back: ways.of(store, worker) };
      lanes.set(worker, await Lane.open({ listenHost, targetHost: "127.0.0.1", targetPort: storePort, ...ends }));
    }
    return new StoreWays(lanes, ways);
  }

  addressFor(worker: Party): string {
    const lane = this.lanes.get(worker);
    if (lane === undefined) throw new Error(`${worker} has no way to the store`);
    return lane.address;
  }

  of(from: Party, to: Party): Way {
    return this.ways.of(from, to);
  }

  async close(): Promise<void> {
    await Promise.all([...this.lanes.values()].map((lane) => lane.close()));
  }
}
