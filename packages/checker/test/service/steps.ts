/** Random stories: small choices that shrink well, made into something that fits the state of things. */
import fc from "fast-check";
import type { History } from "../../src/index.js";
import type { Client } from "./client.js";
import { Story } from "./story.js";

const operations = [
  ["acquire", 26],
  ["tryAcquire", 6],
  ["release", 16],
  ["giveUp", 5],
  ["inspect", 5],
  ["write", 8],
  ["writeLate", 3],
  ["force", 2],
  ["retry", 4],
  ["crashClient", 2],
  ["cut", 3],
  ["heal", 5],
  ["elect", 3],
  ["depose", 2],
  ["crashNode", 2],
  ["restart", 3],
  ["install", 2],
  ["wait", 4],
] as const;

export interface Step {
  readonly op: (typeof operations)[number][0];
  readonly who: number;
  readonly pick: number;
  readonly gapMs: number;
  readonly delayMs: number;
  readonly maxHoldMs: number;
}

export const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  op: fc.oneof(...operations.map(([op, weight]) => ({ arbitrary: fc.constant(op), weight }))),
  who: fc.nat(5),
  pick: fc.nat(60),
  gapMs: fc.constantFrom(0, 1, 1, 3, 3, 10, 10, 40, 200, 1_000, 4_000, 12_000),
  delayMs: fc.constantFrom(0, 0, 0, 100, 2_000),
  maxHoldMs: fc.constantFrom(0, 0, 0, 0, 1_500, 8_000),
});

const clientNames = ["c1", "c2", "c3", "c4"];
const lockNames: readonly (readonly string[])[] = [
  ["a"],
  ["a"],
  ["a"],
  ["b"],
  ["a", "b"],
  ["b", "c"],
  ["r"],
  ["r"],
  ["r", "c"],
];
const slots = 2;

/** Everything that may still happen at its own time is waited for at the end. */
export function storyOf(steps: readonly Step[], rates: readonly number[] = []): History {
  const story = new Story({ ttlMs: 9_000 });
  for (const [at, process] of [...story.world.nodes, ...clientNames].entries()) {
    const rate = rates[at];
    if (rate !== undefined) story.world.setRate(process, rate);
  }
  const lives = clientNames.map((name) => ({ name, life: 1 }));
  const late: { client: string; name: string; slot: number | null; token: number }[] = [];
  for (const step of steps) {
    story.advance(step.gapMs);
    const life = lives[step.who % lives.length] as { name: string; life: number };
    let client = story.client(life.life === 1 ? life.name : `${life.name}.${life.life}`);
    if (client.isDead) {
      life.life += 1;
      client = story.client(`${life.name}.${life.life}`);
    }
    for (const { call, grants } of client.held)
      for (const { name, slot, token } of grants) if (call > 0) late.push({ client: client.name, name, slot, token });
    play(story, client, step, late);
  }
  for (const { name, life } of lives) story.client(life === 1 ? name : `${name}.${life}`).heal();
  if (!story.service.serves) story.service.elect(0);
  story.advance(30_000);
  return story.end();
}

function play(
  story: Story,
  client: Client,
  step: Step,
  late: readonly { client: string; name: string; slot: number | null; token: number }[],
): void {
  const { service } = story;
  const { pick, delayMs } = step;
  const held = client.held[pick % Math.max(client.held.length, 1)];
  switch (step.op) {
    case "acquire":
    case "tryAcquire":
      return playAcquire(client, step);
    case "release":
      if (held !== undefined) client.release(held, pick % 7 === 0 ? delayMs : 0);
      return;
    case "giveUp": {
      const open = client.acquires.filter(({ stage }) => stage === "open");
      const one = open[pick % Math.max(open.length, 1)];
      if (one !== undefined) client.giveUp(one);
      return;
    }
    case "inspect":
      return client.inspect(["a", "b", "r", "s"][pick % 4] ?? "a");
    case "write":
      for (const { name, slot, token } of held?.grants ?? []) story.write(client.name, name, slot, token);
      return;
    case "writeLate": {
      const one = late[pick % Math.max(late.length, 1)];
      if (one !== undefined) story.write(one.client, one.name, one.slot, one.token);
      return;
    }
    case "force": {
      const grant = held?.grants[0];
      if (grant !== undefined && service.serves) story.force("admin", grant.name, grant.token, delayMs);
      return;
    }
    case "retry":
      if (client.isReachable) client.onServing();
      return;
    case "crashClient":
      return client.crash();
    case "cut":
      return client.cut();
    case "heal":
      return client.heal();
    case "elect":
      return service.elect(pick);
    case "depose":
      service.depose();
      story.world.after(300, () => {
        if (service.leaderName === null) service.elect(pick);
      });
      return;
    case "crashNode":
      service.crash(pick);
      story.world.after(300, () => {
        if (service.leaderName === null) service.elect(pick);
      });
      return;
    case "restart":
      return service.restart(pick);
    case "install":
      return service.install();
    case "wait":
      return;
    default:
      return step.op satisfies never;
  }
}

function playAcquire(client: Client, { op, pick, delayMs: lockDelayMs, maxHoldMs }: Step): void {
  if (client.isDead) return;
  const common = { wait: op === "acquire", lockDelayMs, maxHoldMs };
  if (pick % 6 === 0) client.acquire(["s"], { ...common, mode: "slot", slots: pick === 60 ? slots + 1 : slots });
  else {
    const names = lockNames[pick % lockNames.length] ?? ["a"];
    const mode = names.includes("r") && pick % 4 !== 0 ? "shared" : "exclusive";
    client.acquire(names, { ...common, mode });
  }
}
