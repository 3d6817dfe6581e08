/**
 * Each party in a network namespace of its own, on a bridge that leads nowhere else. The ways are cut where they end, by dropping packets:
 * TCP sees what it sees when a switch dies.
 *
 * The namespaces have no names: each is held by a process that ends with this one, and vanishes with its last process. The bridge is in this
 * process's own namespace (enter.ts). So nothing stays behind, however a run ends.
 */
import { runCommand, whyNot } from "../../machine/command.js";
import { startKeeper, waitForStarter } from "../../machine/keeper.js";
import type { Keeper } from "../../machine/keeper.js";
import { harness } from "../network.js";
import type { Door, Network, Parties, Party, Shape } from "../network.js";
import { notAlone, raiseLoopback } from "./enter.js";
import { findRules, obey } from "./filter.js";
import type { Rules, WayState } from "./filter.js";
import { NetnsError } from "./netns-error.js";
import { checkShape, rootQueue, shapeCommands, unshapeCommand } from "./queues.js";

const bridge = "holdfast0";
/** In the party's namespace. */
const device = "eth0";
/** Nothing else is in these namespaces, so any network of 254 addresses will do. */
const subnet = "10.79.0";
const harnessAddress = `${subnet}.1`;
const partiesMax = 200;

/** In a network of its own a node has all ports for itself: the usual ones. */
const ports: Readonly<Record<Door, number>> = { peer: 7_700, client: 7_400 };

interface Place {
  /** From 1; in its namespace the way from another is called by that one's number, and its queue's class too. */
  readonly number: number;
  readonly address: string;
  readonly keeper: Keeper;
  /** The words before a command that bring it there. */
  readonly inside: readonly string[];
  readonly incoming: Map<Party, WayState>;
  readonly shaped: Set<Party>;
}

export class NetnsNetwork implements Network {
  readonly mode = "netns" as const;
  readonly harnessHost: string = harnessAddress;
  readonly #rules: Rules;
  readonly #places: ReadonlyMap<Party, Place>;
  /** Changes of one run after another: two of one way must not end in the order in which their programs were fast. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(rules: Rules, places: ReadonlyMap<Party, Place>) {
    this.#rules = rules;
    this.#places = places;
  }

  /** This process must have been started by the command of `entrance()`. `rules`: of a tool that is surely there; else what is found. */
  static async open({ nodes, workers }: Parties, rules: Rules | null = null): Promise<NetnsNetwork> {
    const parties = [...nodes, ...workers];
    checkParties(parties);
    const problem = await notAlone();
    if (problem !== null) throw new NetnsError("unavailable", problem);
    const found = rules === null ? await findRules() : { rules };
    if ("missing" in found) throw new NetnsError("unavailable", found.missing);
    await raiseLoopback();
    await runCommand(["ip", "-batch", "-"], lines(bridgeUp));
    const places = new Map<Party, Place>();
    try {
      for (const party of parties) places.set(party, await newPlace(places.size + 1));
      await Promise.all(parties.map((party) => setUp(party, places, found.rules)));
    } catch (error) {
      await takeDown([...places.values()]);
      throw error;
    }
    return new NetnsNetwork(found.rules, places);
  }

  bindAddress(node: Party, door: Door): string {
    return `${this.#place(node).address}:${ports[door]}`;
  }

  addressOf(viewer: Party, node: Party, door: Door): string {
    if (viewer !== harness) this.#place(viewer);
    return this.bindAddress(node, door);
  }

  wrap(party: Party, command: readonly string[]): readonly string[] {
    return party === harness ? command : [...this.#place(party).inside, ...command];
  }

  async cut(from: Party, to: Party): Promise<void> {
    await this.#change(from, to, { isCut: true });
  }

  async heal(from: Party, to: Party): Promise<void> {
    await this.#change(from, to, { isCut: false });
  }

  async shape(from: Party, to: Party, shape: Shape | null): Promise<void> {
    if (shape !== null) checkShape(shape);
    await this.#inOrder(async () => {
      await this.#queue(from, to, shape);
      await this.#write(from, to, { lossFraction: shape?.lossFraction ?? 0 });
    });
  }

  /** The kernel of each side sends the reset; over a cut way it is lost, and the other side is told nothing but by its own kernel. */
  async reset(one: Party, other: Party): Promise<void> {
    const [a, b] = this.#way(one, other);
    await this.#inOrder(async () => {
      for (const [here, there] of [
        [a, b],
        [b, a],
      ] as const) {
        await runCommand([...here.inside, "ss", "--kill", "--tcp", "--no-header", "dst", there.address]);
      }
    });
  }

  async bytesPassed(from: Party, to: Party): Promise<number> {
    const [sender, receiver] = this.#way(from, to);
    const printed = await obey(receiver.inside, this.#rules.count(sender.number));
    const bytes = this.#rules.counted(printed);
    if (bytes === null) throw new NetnsError("unavailable", `no counter in: ${printed}`);
    return bytes;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#last;
    await takeDown([...this.#places.values()]);
  }

  async #change(from: Party, to: Party, change: Partial<WayState>): Promise<void> {
    await this.#inOrder(() => this.#write(from, to, change));
  }

  async #write(from: Party, to: Party, change: Partial<WayState>): Promise<void> {
    const [sender, receiver] = this.#way(from, to);
    const state = { ...(receiver.incoming.get(from) ?? openWay), ...change };
    await obey(receiver.inside, this.#rules.change(sender.number, state));
    receiver.incoming.set(from, state);
  }

  async #queue(from: Party, to: Party, shape: Shape | null): Promise<void> {
    const [sender, receiver] = this.#way(from, to);
    const waits =
      shape !== null && [shape.delayMs, shape.jitterMs, shape.bytesPerSecond].some((one) => one !== undefined);
    if (waits) {
      const commands = shapeCommands(device, receiver.number, shape, !sender.shaped.has(to));
      // From the first command on there is a class to be taken away.
      for (const command of commands) {
        const problem = await whyNot([...sender.inside, ...command]);
        if (problem !== null) throw new NetnsError("unsupported_shape", problem);
        sender.shaped.add(to);
      }
    } else if (sender.shaped.delete(to)) {
      await runCommand([...sender.inside, ...unshapeCommand(device, receiver.number)]);
    }
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return Promise.reject(new NetnsError("closed", "the network is closed"));
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  #way(from: Party, to: Party): [sender: Place, receiver: Place] {
    if (from === to) throw new NetnsError("bad_argument", `from and to are both ${from}`);
    return [this.#place(from), this.#place(to)];
  }

  #place(party: Party): Place {
    const place = this.#places.get(party);
    if (place === undefined) throw new NetnsError("unknown_party", `${party} is no node and no worker of this network`);
    return place;
  }
}

const openWay: WayState = { isCut: false, lossFraction: 0 };

function checkParties(parties: readonly Party[]): void {
  if (parties.length > partiesMax) {
    throw new NetnsError("bad_argument", `parties are ${parties.length}: at most ${partiesMax}`);
  }
  if (new Set([...parties, harness]).size <= parties.length) {
    throw new NetnsError("bad_argument", `parties: a name is given twice, or is "${harness}"`);
  }
}

/** No waiting for other switches, and no addresses of IPv6 that would announce themselves. */
const bridgeUp = [
  `link add name ${bridge} type bridge forward_delay 0 stp_state 0`,
  `link set dev ${bridge} addrgenmode none`,
  `addr add ${harnessAddress}/24 dev ${bridge}`,
  `link set dev ${bridge} up`,
];

async function newPlace(number: number): Promise<Place> {
  const keeper = await startKeeper(["unshare", "--net", "--", "sh", "-c", waitForStarter]);
  return {
    number,
    address: `${subnet}.${number + 1}`,
    keeper,
    inside: ["nsenter", `--net=/proc/${keeper.pid}/ns/net`, "--"],
    incoming: new Map(),
    shaped: new Set(),
  };
}

async function setUp(party: Party, places: ReadonlyMap<Party, Place>, rules: Rules): Promise<void> {
  const here = places.get(party) as Place;
  const port = portOf(here.number);
  const outside = [
    `link add name ${port} type veth peer name ${device} netns ${here.keeper.pid}`,
    `link set dev ${port} addrgenmode none`,
    `link set dev ${port} master ${bridge}`,
    `link set dev ${port} up`,
  ];
  const inside = [
    `link set dev lo up`,
    `link set dev ${device} addrgenmode none`,
    `addr add ${here.address}/24 dev ${device}`,
    `link set dev ${device} up`,
  ];
  await runCommand(["ip", "-batch", "-"], lines(outside));
  await runCommand([...here.inside, "ip", "-batch", "-"], lines(inside));
  for (const command of rootQueue(device)) await runCommand([...here.inside, ...command]);
  const others = [...places.values()].filter((place) => place !== here);
  const incoming = others.map(({ number, address }) => ({ id: number, address }));
  const outgoing = others.map(({ number, address }) => ({ classId: number, address }));
  await obey(here.inside, rules.setUp(incoming, outgoing));
}

/** A process that still runs in a namespace keeps it, but not the cable that leads to it. What isn't there any more is passed over. */
async function takeDown(places: readonly Place[]): Promise<void> {
  await Promise.all(places.map(({ keeper }) => keeper.end()));
  for (const name of [...places.map(({ number }) => portOf(number)), bridge]) {
    await whyNot(["ip", "link", "del", "dev", name]);
  }
}

/** The harness's end of a party's cable. */
function portOf(number: number): string {
  return `party${number}`;
}

function lines(commands: readonly string[]): string {
  return `${commands.join("\n")}\n`;
}
