import assert from "node:assert/strict";
import { test } from "node:test";
import type { LockView } from "@holdfast/client";
import { ordinal, WaitLine, waitText } from "../../src/lock/wait-line.js";
import { until } from "../until.js";

function lockWith(holders: readonly string[], waiters: readonly string[], more: Partial<LockView> = {}): LockView {
  return {
    name: "doc:42",
    mode: "exclusive",
    slots: 0,
    holders: holders.map((info, at) => ({ session: at + 1, token: 4711, slot: null, mode: "exclusive", info })),
    holderCount: holders.length,
    waiters: waiters.map((info, at) => ({
      session: at + 9,
      mode: "exclusive",
      names: ["doc:42"],
      info,
      reserves: false,
    })),
    waiterCount: waiters.length,
    delays: [],
    ...more,
  } as LockView;
}

test("a wait is told by its place, and by who is waited for", () => {
  const own = { info: "me", seenMs: 12_900 };
  const table: [LockView, string][] = [
    [lockWith(["worker-7"], ["a", "b", "me"]), "doc:42: 3rd in line; held by worker-7, token 4711, for 12s or longer"],
    [
      lockWith(["worker-7"], ["me"], { holderCount: 3 }),
      "doc:42: 1st in line; held by worker-7 and 2 more, token 4711, for 12s or longer",
    ],
    // A view names some waiters only.
    [
      lockWith(["w"], ["a", "b"], { waiterCount: 40 }),
      "doc:42: 3rd to 40th in line; held by w, token 4711, for 12s or longer",
    ],
    [lockWith(["w"], ["a", "b"], { waiterCount: 3 }), "doc:42: 3rd in line; held by w, token 4711, for 12s or longer"],
    // Its request has not arrived yet.
    [
      lockWith(["w\u001b[2J"], ["a", "b"]),
      "doc:42: behind 2 others; held by w\\u001b[2J, token 4711, for 12s or longer",
    ],
    [
      lockWith([], ["me"], { delays: [{ index: 4, delayMs: 5_000, slot: null }] }),
      "doc:42: 1st in line; nobody holds it",
    ],
  ];
  for (const [lock, text] of table) assert.equal(waitText("doc:42", lock, own), text);
  assert.match(waitText("doc:42", lockWith(["w"], ["me"]), { ...own, seenMs: 999 }), /token 4711$/);
});

test("ordinals", () => {
  const ordinals = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 101, 111, 112, 1_003].map(ordinal).join(" ");
  assert.equal(ordinals, "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 23rd 101st 111th 112th 1003rd");
});

test("the line is written over while the wait lasts, and gone after it", async () => {
  let err = "";
  let now = 0;
  const line = new WaitLine("doc:42", "me", { err: (text) => (err += text), isStatusLine: true }, () => now);
  let looks = 0;
  const keepAlive = setInterval(() => undefined, 1_000);
  line.start(async () => {
    looks += 1;
    now += 1_000;
    if (looks === 2) throw new Error("nobody answers");
    return lockWith(["w"], ["me"]);
  }, 5);
  await until(() => looks > 3, "looks");
  line.say("a note\n");
  line.stop();
  clearInterval(keepAlive);
  const clear = "\r\u001b[K";
  assert.ok(err.startsWith(`${clear}doc:42: 1st in line; held by w, token 4711${clear}doc:42`), JSON.stringify(err));
  assert.match(err, /for 2s or longer/);
  assert.ok(err.endsWith(`${clear}a note\n`), JSON.stringify(err));
  line.stop();
  assert.ok(err.endsWith("a note\n"));
});

test("an answer that comes after the wait shows nothing", async () => {
  let err = "";
  const line = new WaitLine("doc:42", "me", { err: (text) => (err += text), isStatusLine: true });
  let answer: (lock: LockView) => void = () => undefined;
  let asked = 0;
  const keepAlive = setInterval(() => undefined, 1_000);
  line.start(() => {
    asked += 1;
    return new Promise((resolve) => (answer = resolve));
  }, 5);
  await until(() => asked === 1, "asked");
  line.stop();
  answer(lockWith(["w"], ["me"]));
  await new Promise((resolve) => setImmediate(resolve));
  clearInterval(keepAlive);
  assert.equal(err, "");
});

test("without a terminal nothing is looked at", async () => {
  let looks = 0;
  const line = new WaitLine("doc:42", "me", { err: () => assert.fail("printed"), isStatusLine: false });
  line.start(async () => {
    looks += 1;
    return null;
  }, 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(looks, 0);
  line.stop();
});
