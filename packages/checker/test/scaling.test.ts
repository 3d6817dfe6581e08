/** Long histories: the work is counted, not timed. */
import assert from "node:assert/strict";
import test from "node:test";
import { check } from "../src/index.js";
import type { History } from "../src/index.js";
import { Story } from "./service/story.js";

const clientCount = 8;

/** Eight clients, twenty locks that change hands, some readers and reads and refusals, a new leader now and then. */
function longHistory(eventCount: number): History {
  const story = new Story({ isHashed: false });
  for (let turn = 0; story.world.events.length < eventCount; turn += 1) {
    if (turn % 500 === 499) story.service.elect(turn);
    const client = story.client(`c${turn % clientCount}`);
    const name = `l${(turn * 7) % 20}`;
    if (turn % 13 === 0) client.acquire([`r${turn % 5}`], { mode: "shared" });
    else client.acquire([name], { wait: turn % 11 !== 0 });
    if (turn % 17 === 0) client.inspect(name);
    for (const { grants } of client.held.slice(0, 1))
      for (const { name: held, slot, token } of grants) story.write(client.name, held, slot, token);
    const [oldest] = client.held;
    if (oldest !== undefined && turn % 3 !== 0) client.release(oldest);
    for (let at = 0; at < clientCount && turn % 50 === 0; at += 1) {
      const other = story.client(`c${at}`);
      for (const hold of other.held) other.release(hold);
    }
    story.advance(15);
  }
  story.advance(200);
  return story.end();
}

test("a history of 100,000 events is checked with work that grows no faster than it", () => {
  const history = longHistory(100_000);
  let reads = 0;
  const events = new Proxy(history.events, {
    get(target, property, receiver) {
      reads += 1;
      return Reflect.get(target, property, receiver) as unknown;
    },
  });
  const { ok, violations, counts } = check({ ...history, events });
  assert.deepEqual(violations, []);
  assert.ok(ok);
  assert.equal(counts.events, history.events.length);
  assert.ok(reads < 12 * counts.events, `${reads} reads of ${counts.events} events`);
  assert.ok(counts.operations > 10_000 && counts.locks === 25, `${counts.operations} operations`);
  assert.ok(counts.steps < 4 * counts.operations, `${counts.steps} steps for ${counts.operations} operations`);
  for (const rule of ["replay", "told-committed", "hold-overlap", "guard"] as const)
    assert.ok(counts.judged[rule] > 2_000, `${rule}: ${counts.judged[rule]}`);
});
