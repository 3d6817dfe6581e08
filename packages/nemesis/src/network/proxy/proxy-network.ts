/** A proxy for each ordered pair of parties, on any machine: every party has an address of its own for every node. */
import { freePorts } from "../../free-ports.js";
import { harness } from "../network.js";
import type { Door, Network, Parties, Party, Shape } from "../network.js";
import { Lane } from "./lane.js";
import { Ways } from "./way.js";

const host = "127.0.0.1";
const doors: readonly Door[] = ["peer", "client"];

export class ProxyNetwork implements Network {
  readonly mode = "proxy" as const;
  readonly harnessHost: string = host;
  private readonly ways: Ways;
  private readonly bound: ReadonlyMap<string, number>;
  private readonly lanes: ReadonlyMap<string, Lane>;

  private constructor(ways: Ways, bound: ReadonlyMap<string, number>, lanes: ReadonlyMap<string, Lane>) {
    this.ways = ways;
    this.bound = bound;
    this.lanes = lanes;
  }

  static async open({ nodes, workers }: Parties): Promise<ProxyNetwork> {
    const ports = await freePorts(host, nodes.length * doors.length);
    const bound = new Map(
      nodes.flatMap((node, at) =>
        doors.map((door, which) => [placeOf(node, door), ports[2 * at + which] ?? 0] as const),
      ),
    );
    const ways = new Ways();
    const lanes = new Map<string, Lane>();
    const add = async (viewer: Party, node: Party, door: Door): Promise<void> => {
      const targetPort = bound.get(placeOf(node, door)) ?? 0;
      const options = { listenHost: host, targetHost: host, targetPort };
      lanes.set(
        laneOf(viewer, node, door),
        await Lane.open({ ...options, there: ways.of(viewer, node), back: ways.of(node, viewer) }),
      );
    };
    for (const node of nodes) {
      for (const other of nodes) if (other !== node) await add(other, node, "peer");
      for (const worker of workers) await add(worker, node, "client");
    }
    return new ProxyNetwork(ways, bound, lanes);
  }

  bindAddress(node: Party, door: Door): string {
    const port = this.bound.get(placeOf(node, door));
    if (port === undefined) throw new Error(`there is no node ${node}`);
    return `${host}:${port}`;
  }

  addressOf(viewer: Party, node: Party, door: Door): string {
    if (viewer === harness || viewer === node) return this.bindAddress(node, door);
    const lane = this.lanes.get(laneOf(viewer, node, door));
    if (lane === undefined) throw new Error(`${viewer} has no way to the ${door} port of ${node}`);
    return lane.address;
  }

  wrap(_party: Party, command: readonly string[]): readonly string[] {
    return command;
  }

  cut(from: Party, to: Party): Promise<void> {
    this.ways.of(from, to).cut();
    return Promise.resolve();
  }

  heal(from: Party, to: Party): Promise<void> {
    this.ways.of(from, to).heal();
    return Promise.resolve();
  }

  shape(from: Party, to: Party, shape: Shape | null): Promise<void> {
    this.ways.of(from, to).shape(shape);
    return Promise.resolve();
  }

  reset(one: Party, other: Party): Promise<void> {
    for (const lane of this.lanesBetween(one, other)) lane.reset();
    return Promise.resolve();
  }

  /** Ends the way from one to the other on each of their connections, in order. */
  halfClose(from: Party, to: Party): void {
    for (const door of doors) {
      this.lanes.get(laneOf(from, to, door))?.halfClose("there");
      this.lanes.get(laneOf(to, from, door))?.halfClose("back");
    }
  }

  bytesPassed(from: Party, to: Party): Promise<number> {
    return Promise.resolve(this.ways.of(from, to).bytesPassed);
  }

  async close(): Promise<void> {
    await Promise.all([...this.lanes.values()].map((lane) => lane.close()));
  }

  private lanesBetween(one: Party, other: Party): Lane[] {
    return doors.flatMap((door) =>
      [laneOf(one, other, door), laneOf(other, one, door)].flatMap((key) => this.lanes.get(key) ?? []),
    );
  }
}

function placeOf(node: Party, door: Door): string {
  return `${node} ${door}`;
}

function laneOf(viewer: Party, node: Party, door: Door): string {
  return `${viewer} ${node} ${door}`;
}
