/** docs/examples/outbox/sender.js, killed and paused at each step: nothing is lost, and nothing is done twice. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePorts } from "../harness/cluster.js";
import { skipWithoutDebianPostgres } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import type { ExampleProcess } from "./example-process.js";
import {
  assertArrived,
  atEachStep,
  countSteps,
  databasePort,
  environment,
  succeed,
  newMessage,
  run,
  startReceiver,
  urlAt,
  useOutbox,
} from "./outbox.js";
import type { Harm } from "./outbox.js";
import { StepProxy, Steps } from "./step-proxy.js";

describe("the outbox example", { skip: skipWithoutDebianPostgres(), timeout: 280_000 }, () => {
  useOutbox();
  test("a sender killed or paused at each step: each message arrives, and is applied once", senderTest);
});

async function senderTest(): Promise<void> {
  const [port = 0] = await freePorts(1);
  const receiver = await startReceiver(port, databasePort());
  const sender = (database: number, target: number): ExampleProcess =>
    run("sender.js", [], environment(database, { RECEIVER: urlAt(target) }));
  const send = async (steps: Steps, started: (process: ExampleProcess) => Promise<void>): Promise<void> => {
    const proxies = await Promise.all([databasePort(), port].map((target) => StepProxy.start(target, steps)));
    await started(sender(proxies[0]?.port ?? 0, proxies[1]?.port ?? 0));
    await Promise.all(proxies.map((proxy) => proxy.close()));
  };
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newMessage();
    let old: ExampleProcess | null = null;
    const steps = new Steps(at, () => old?.signal(harm));
    await send(steps, async (process) => {
      old = process;
      await until("the sender is harmed, or done", () => steps.hasActed || process.isOver, 120_000);
      await succeed(() => sender(databasePort(), port));
      process.signal("SIGCONT");
      await process.ended();
    });
    await assertArrived(order, `${harm} at step ${at}`);
    return steps.hasActed;
  };
  try {
    await newMessage();
    const count = await countSteps((steps) =>
      send(steps, async (process) => assert.equal(await process.ended(), 0, process.output)),
    );
    await atEachStep(count, 1, work);
  } finally {
    receiver.signal("SIGKILL");
  }
}
