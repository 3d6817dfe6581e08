/** A small world to tell stories in: three nodes, clients by name, one leader to begin with. */
import type { History } from "../../src/index.js";
import { Client } from "./client.js";
import { Service } from "./service.js";
import { World } from "./world.js";

export interface StoryOptions {
  readonly ttlMs?: number;
  readonly electionTimeoutMs?: number;
  readonly isHashed?: boolean;
}

export class Story {
  readonly world: World;
  readonly service: Service;
  readonly ttlMs: number;
  private readonly clients: Map<string, Client> = new Map();
  private calls = 0;
  private readonly registers: Map<string, number> = new Map();

  constructor({ ttlMs = 10_000, electionTimeoutMs = 300, isHashed = true }: StoryOptions = {}) {
    this.ttlMs = ttlMs;
    this.world = new World(["n1", "n2", "n3"], electionTimeoutMs);
    this.service = new Service(this.world, isHashed);
    this.service.elect(0);
    this.advance(5);
  }

  client(name: string): Client {
    let client = this.clients.get(name);
    if (client === undefined) {
      client = new Client(name, this.ttlMs, { world: this.world, service: this.service, nextCall: this.nextCall });
      this.clients.set(name, client);
    }
    return client;
  }

  readonly nextCall = (): number => {
    this.calls += 1;
    return this.calls;
  };

  /** Followers apply as they go. */
  advance(ms: number): void {
    this.world.advance(ms);
    this.service.catchUp();
  }

  /** As the resource decides. */
  write(client: string, name: string, slot: number | null, token: number): void {
    const resource = slot === null ? name : `${name}#${slot}`;
    const highest = this.registers.get(resource) ?? -1;
    const accepted = token >= highest;
    if (accepted) this.registers.set(resource, token);
    this.world.record({ kind: "guardWrite", client, resource, name, slot, token, accepted });
  }

  force(client: string, name: string, token: number, lockDelayMs = 0): void {
    const call = this.nextCall();
    this.world.record({ kind: "call", client, call, op: { kind: "forceRelease", name, token } });
    this.advance(2);
    const command = { kind: "forceRelease", name, token, lockDelayMs } as const;
    const effects = this.service.commit({ kind: "command", command });
    const forced = effects.find((effect) => effect.kind === "forced");
    this.advance(2);
    const ended = forced?.kind === "forced" ? forced.ended : 0;
    this.world.record({ kind: "return", call, result: { kind: "forced", ended } });
  }

  /** Everything comes to rest, and every node says what it has. */
  end(): History {
    this.service.rest();
    return this.world.history();
  }
}
