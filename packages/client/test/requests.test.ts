/** The book of request numbers, against the lock machine's own rules. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockMachine } from "@holdfast/lock";
import type { SessionRequest } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import fc from "fast-check";
import { RequestBook } from "../src/requests.js";

describe("RequestBook", () => {
  test("settled follows the lowest open number", () => {
    const book = new RequestBook();
    const [one, two, three] = [book.begin(9), book.begin(9), book.begin(9)];
    assert.deepEqual([one.request, two.request, three.request], [1, 2, 3]);
    book.end(2);
    assert.equal(book.begin(9).settled, 1);
    book.end(1);
    assert.equal(book.begin(9).settled, 3);
    book.end(3);
    book.end(4);
    book.end(5);
    assert.deepEqual(book.begin(9), { session: 9, request: 6, settled: 6, seen: [] });
  });

  test("what a refused command carried is told by another", () => {
    const book = new RequestBook();
    const begun = Array.from({ length: 200 }, () => book.begin(1).request);
    for (const number of begun) if (number > 1) book.end(number);
    const refused = book.begin(1);
    assert.equal(refused.seen.length, limits.seenMax);
    book.unanswered(refused.request);
    book.end(refused.request);
    const told = new Set<number>();
    for (let at = 0; at < 5; at += 1) for (const number of book.begin(1).seen) told.add(number);
    for (const number of refused.seen) assert.ok(told.has(number), `${number} is told`);
  });

  test("a number that ends twice, or never began, changes nothing", () => {
    const book = new RequestBook();
    book.begin(1);
    book.begin(1);
    book.end(2);
    book.end(2);
    book.end(17);
    book.end(1);
    assert.equal(book.begin(1).settled, 3);
  });

  /**
   * Random lives of requests: acquires that are held for short or long, ended in any order. The machine must never refuse a number,
   * nor keep more than the book believes.
   */
  test("the machine keeps no more outcomes than the book says, and refuses none", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 50, maxLength: 600 }), (choices) => {
        const machine = new LockMachine();
        const book = new RequestBook();
        let index = 1;
        machine.apply(index, { kind: "openSession", key: "0".repeat(32), ttlMs: 60_000, info: "" });
        const held: number[] = [];
        const apply = (command: Parameters<LockMachine["apply"]>[1], carried: SessionRequest): void => {
          index += 1;
          for (const effect of machine.apply(index, command)) {
            if (effect.kind === "rejected") throw new Error(`${effect.request}: ${effect.rejection.kind}`);
          }
          book.answered(carried.request);
        };
        for (const choice of choices) {
          if (choice % 3 > 0 || held.length === 0) {
            const carried = book.begin(1);
            const asked = {
              names: [`lock-${carried.request}`],
              slots: 0,
              wait: true,
              lockDelayMs: 0,
              maxHoldMs: 0,
              info: "",
            };
            apply({ kind: "acquire", ...carried, ...asked, mode: "exclusive" }, carried);
            held.push(carried.request);
          } else {
            const [of = 0] = held.splice(choice % held.length, 1);
            const carried = book.begin(1);
            apply({ kind: "release", ...carried, of, afterMs: 0 }, carried);
            book.end(carried.request);
            book.end(of);
          }
        }
        // Tell all that is left, then count what the machine still knows: each is an open number.
        while (book.canMakeRoom) apply({ kind: "cancel", ...book.beginTelling(1), of: 1 }, { ...book.repeat(1, 0) });
        assert.ok(book.hasRoom(held.length + limits.seenMax + choices.length), "few are open");
        machine.checkInvariants();
      }),
      { numRuns: 60 },
    );
  });
});
