/** What every guard promises, whatever the store: one suite, run on each. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { prometheusFenceMetrics } from "@holdfast/fence";
import type { NamedFence, StoreKind, Stored } from "./guarded-store.js";
import { tokenMax } from "./guarded-store.js";
import { killTests } from "./kill-contract.js";
import { pauseTests } from "./pause-contract.js";
import { raceTests } from "./race-contract.js";
import { freshResource, isStale, oneAtATime } from "./subject.js";
import type { ContractOptions, Subject } from "./subject.js";

export function storeContract(kind: StoreKind, options: ContractOptions = {}): void {
  describe(`the guard on ${kind.kind}`, { skip: kind.skip, timeout: options.limitMs ?? 240_000 }, () => {
    const subject = { kind, reports: [], metrics: prometheusFenceMetrics() } as unknown as Subject;
    before(async () => {
      subject.place = await kind.start();
      subject.store = await kind.open(subject.place.address, {
        onStale: (report) => subject.reports.push(report),
        metrics: subject.metrics,
        resourceClass: (resource) => resource.split("/")[0] ?? "",
      });
    });
    after(async () => {
      await subject.store?.close();
      await subject.place?.stop();
    });
    tokenTests(subject);
    lifeTests(subject);
    nameTests(subject);
    transactionTests(subject);
    reportTests(subject);
    raceTests(subject, options);
    if (options.isOneProcess === true) return;
    pauseTests(subject);
    killTests(subject);
  });
}

/** Each guarded operation under this fence is refused, and what is stored stays as it is. */
async function assertClosed(subject: Subject, fence: NamedFence, highest: number): Promise<void> {
  const { store } = subject;
  const stored = await store.stored(fence.resource);
  const refusal = isStale(fence.token, highest, fence.resource);
  await assert.rejects(store.write(fence, "late"), refusal, "write");
  await assert.rejects(store.append(fence, "late"), refusal, "append");
  await assert.rejects(store.read(fence), refusal, "read");
  await assert.rejects(store.remove(fence), refusal, "remove");
  assert.deepEqual(await store.stored(fence.resource), stored, "a refused token changed nothing");
}

function tokenTests(subject: Subject): void {
  test("an equal token is accepted again, a lower one is refused and changes nothing, a higher one is remembered", async () => {
    const { store } = subject;
    const resource = freshResource();
    await store.write({ resource, token: 9 }, "nine");
    await store.write({ resource, token: 9 }, "nine again");
    await store.append({ resource, token: 9 }, "line");
    // As text "10" is below "9".
    await store.write({ resource, token: 10 }, "ten");
    const stored = await store.stored(resource);
    assert.deepEqual([stored.body, stored.token], ["ten", 10]);
    await assertClosed(subject, { resource, token: 9 }, 10);
    await store.append({ resource, token: 100 }, "hundred");
    await assertClosed(subject, { resource, token: 99 }, 100);
  });

  test("a read closes the resource to older holders, and so does a removal", async () => {
    const { store } = subject;
    const resource = freshResource();
    await store.write({ resource, token: 5 }, "five");
    assert.equal(await store.read({ resource, token: 7 }), "five");
    assert.deepEqual(await store.stored(resource), { ...(await store.stored(resource)), body: "five", token: 7 });
    await assertClosed(subject, { resource, token: 6 }, 7);
    assert.equal(await store.read({ resource, token: 7 }), "five");
  });

  test("tokens up to 2^53 - 1 are exact", async () => {
    const { store } = subject;
    const resource = freshResource();
    // Integers of 32 bits end, those that floating ones hold exactly end, and so do safe ones.
    for (const token of [2 ** 31 - 1, 2 ** 31, 2 ** 51 - 1, 2 ** 51 + 1, tokenMax - 1, tokenMax]) {
      await store.write({ resource, token }, `under ${token}`);
      const { body, token: kept } = await store.stored(resource);
      assert.deepEqual([body, kept], [`under ${token}`, token]);
      await assertClosed(subject, { resource, token: token - 1 }, token);
    }
    for (const token of [0, -1, 1.5, tokenMax + 1, Number.NaN, "7" as unknown as number]) {
      await assert.rejects(store.write({ resource, token }, "odd"), { code: "invalid_argument" }, String(token));
    }
    assert.equal((await store.stored(resource)).body, `under ${tokenMax}`);
  });
}

function lifeTests(subject: Subject): void {
  test("the first use of a resource takes any token, and is remembered", async () => {
    const { store } = subject;
    const written = freshResource();
    assert.deepEqual(await store.stored(written), { body: null, lines: [], token: null });
    await store.write({ resource: written, token: 1 }, "first");
    await store.write({ resource: written, token: 2 }, "second");
    await assertClosed(subject, { resource: written, token: 1 }, 2);
    const appended = freshResource();
    await store.append({ resource: appended, token: 33 }, "first");
    assert.deepEqual((await store.stored(appended)).lines, ["first"]);
    await assertClosed(subject, { resource: appended, token: 32 }, 33);
  });

  test("a first read closes the resource, where the register isn't in the data", async () => {
    const { store, kind } = subject;
    const resource = freshResource();
    const reading = store.read({ resource, token: 8 });
    if (!kind.remembersRemoved) return assert.rejects(reading, { code: "resource_missing" });
    assert.equal(await reading, null);
    assert.equal((await store.stored(resource)).token, 8);
    await assertClosed(subject, { resource, token: 7 }, 8);
  });

  test("a deleted and made again resource stays closed, where the register isn't in the data", async () => {
    const { store, kind } = subject;
    const resource = freshResource();
    await store.write({ resource, token: 20 }, "before");
    await store.append({ resource, token: 20 }, "before");
    await store.remove({ resource, token: 21 });
    const { body, lines, token } = await store.stored(resource);
    assert.deepEqual([body, lines], [null, []]);
    assert.equal(token, kind.remembersRemoved ? 21 : null);
    const late = { resource, token: 20 };
    if (kind.remembersRemoved) await assertClosed(subject, late, 21);
    // The fence went with its row: docs/fencing.md says so.
    else await store.write(late, "back");
    await store.write({ resource, token: 22 }, "again");
    assert.equal((await store.stored(resource)).body, "again");
    await assertClosed(subject, { resource, token: 21 }, 22);
  });
}

function nameTests(subject: Subject): void {
  test("the slots of a semaphore have a register each", async () => {
    const { store } = subject;
    const name = freshResource("pool");
    const [first, second] = [`${name}#0`, `${name}#1`];
    await store.write({ resource: first, token: 50 }, "zero");
    await store.write({ resource: second, token: 40 }, "one");
    await store.write({ resource: second, token: 41 }, "one again");
    await assertClosed(subject, { resource: first, token: 49 }, 50);
    await assertClosed(subject, { resource: second, token: 40 }, 41);
  });

  test("holders of a shared generation write under one token, until an exclusive one has come", async () => {
    const { store } = subject;
    const resource = freshResource();
    const shared = { resource, token: 60 };
    await Promise.all(["a", "b", "c"].map((holder) => store.append({ ...shared, holder }, holder)));
    await store.read(shared);
    assert.deepEqual([...(await store.stored(resource)).lines].sort(), ["a", "b", "c"]);
    await store.append({ resource, token: 61 }, "exclusive");
    await assertClosed(subject, shared, 61);
    await store.append({ resource, token: 62 }, "shared again");
  });

  test("names and texts are data, however they look", async () => {
    const { store, kind } = subject;
    const names = [
      "'; DROP TABLE documents; --",
      "../../etc/passwd",
      "..",
      "A/a",
      "a/A",
      "spa ce\n",
      'q"`$\\',
      "名前",
      "é",
      "e\u0301",
    ];
    const odd = names.filter((name) => kind.takesLockNames !== true || !/\p{Cc}/u.test(name));
    const resources = odd.map((name) => `${freshResource()} ${name}`);
    for (const [at, resource] of resources.entries()) await store.write({ resource, token: at + 5 }, `${odd[at]}\r\n`);
    for (const [at, resource] of resources.entries()) {
      const { body, token } = await store.stored(resource);
      assert.deepEqual([body, token], [`${odd[at]}\r\n`, at + 5]);
      await assert.rejects(store.write({ resource, token: at + 4 }, "late"), isStale(at + 4, at + 5, resource));
    }
    for (const resource of ["", "\ud800", "a\0b", 5 as unknown as string]) {
      await assert.rejects(store.write({ resource, token: 1 }, "x"), { code: "invalid_argument" });
    }
  });
}

function transactionTests(subject: Subject): void {
  const skip = subject.kind.changesSeveral ? false : oneAtATime;
  test("several resources change together, and one stale token stops all", { skip }, async () => {
    const { store } = subject;
    const [a, b] = [freshResource("acct"), freshResource("acct")];
    await store.writeAll(
      [
        { resource: b, token: 12 },
        { resource: a, token: 12 },
      ],
      "both",
    );
    for (const resource of [a, b]) {
      const { body, token } = await store.stored(resource);
      assert.deepEqual([body, token], ["both", 12]);
    }
    await store.write({ resource: b, token: 20 }, "newer");
    const before: Stored[] = [await store.stored(a), await store.stored(b)];
    const late = store.writeAll(
      [
        { resource: a, token: 13 },
        { resource: b, token: 13 },
      ],
      "late",
    );
    await assert.rejects(late, isStale(13, 20, b));
    assert.deepEqual([await store.stored(a), await store.stored(b)], before);
    await store.writeAll(
      [
        { resource: a, token: 21 },
        { resource: b, token: 20 },
      ],
      "both again",
    );
    assert.equal((await store.stored(a)).token, 21);
  });
}

function reportTests(subject: Subject): void {
  const skip = subject.kind.reportsElsewhere === true ? "its guard is in the server: http-guard.test.ts" : false;
  test("a refusal is reported once, with who, what, which token and which is highest, and counted by class", {
    skip,
  }, async () => {
    const { store, kind, reports, metrics } = subject;
    const resource = freshResource("reported");
    const series = `holdfast_fence_rejected_total{guard="${kind.guard}",class="reported"}`;
    await store.write({ resource, token: 3 }, "three");
    await store.write({ resource, token: 3 }, "three");
    reports.length = 0;
    assert.ok(!metrics.prometheusText().includes(series), "what was accepted counts nothing");
    await assert.rejects(store.write({ resource, token: 2, holder: "worker-7" }, "late"));
    await assert.rejects(store.read({ resource, token: 1 }));
    const common = { guard: kind.guard, resource, resourceClass: "reported", highest: 3 };
    const here = reports[1]?.holder ?? "";
    assert.deepEqual(reports, [
      { ...common, holder: "worker-7", presented: 2 },
      { ...common, holder: here, presented: 1 },
    ]);
    assert.ok(here.endsWith(`/${process.pid}`), here);
    assert.ok(metrics.prometheusText().includes(`${series} 2\n`), metrics.prometheusText());
  });
}
