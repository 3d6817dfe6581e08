/** docs/examples/outbox/worker.js, killed and paused at each step: nothing is lost, and nothing is done twice. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { skipWithoutDebianPostgres } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import {
  atEachStep,
  cents,
  countSteps,
  databasePort,
  environment,
  messagesOf,
  succeed,
  newOrder,
  run,
  useOutbox,
} from "./outbox.js";
import type { Harm } from "./outbox.js";
import { StepProxy, Steps } from "./step-proxy.js";

/** Each is two processes, and waits for leases to end. */
const atOnce = 6;

describe("the outbox example", { skip: skipWithoutDebianPostgres(), timeout: 280_000 }, () => {
  useOutbox();
  test("a worker killed or paused at each step: the order is charged and has one message", workerTest);
});

async function workerTest(): Promise<void> {
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newOrder();
    const steps: Steps = new Steps(at, () => old.signal(harm));
    const proxy = await StepProxy.start(databasePort(), steps);
    const old = run("worker.js", [`${order}`], environment(proxy.port));
    await until("the worker is harmed, or done", () => steps.hasActed || old.isOver, 120_000);
    await succeed(() => run("worker.js", [`${order}`], environment(databasePort())));
    old.signal("SIGCONT");
    const end = await old.ended();
    await proxy.close();
    if (steps.hasActed && harm === "SIGKILL") assert.equal(end, "SIGKILL");
    const message = { body: { order, cents }, sent: false, received: false, state: "charged" };
    assert.deepEqual(await messagesOf(order), [message], `${harm} at step ${at}: ${old.output}`);
    return steps.hasActed;
  };
  const count = await countSteps(async (steps) => {
    const proxy = await StepProxy.start(databasePort(), steps);
    const order = await newOrder();
    await succeed(() => run("worker.js", [`${order}`], environment(proxy.port)));
    await proxy.close();
  });
  await atEachStep(count, atOnce, work);
}
