/** docs/examples/outbox/receiver.js, killed and paused at each step: nothing is lost, and nothing is done twice. */
import { describe, test } from "node:test";
import { freePorts } from "../harness/cluster.js";
import { skipWithoutDebianPostgres } from "../harness/postgres.js";
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
  test("a receiver killed or paused at each step: each message arrives, and is applied once", receiverTest);
});

async function receiverTest(): Promise<void> {
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newMessage();
    const [port = 0] = await freePorts(1);
    const steps: Steps = new Steps(at, () => receiver.signal(harm));
    const proxy = await StepProxy.start(databasePort(), steps);
    const receiver = await startReceiver(port, proxy.port);
    const environmentOfSender = environment(databasePort(), { RECEIVER: urlAt(port) });
    let next = receiver;
    try {
      // Ends with 0 or, when nobody answered it, with 1.
      await run("sender.js", [], environmentOfSender).ended();
      receiver.signal("SIGCONT");
      if (steps.hasActed && harm === "SIGKILL") next = await startReceiver(port, databasePort());
      await succeed(() => run("sender.js", [], environmentOfSender));
      await assertArrived(order, `${harm} at step ${at}`);
    } finally {
      for (const each of [receiver, next]) each.signal("SIGKILL");
      await proxy.close();
    }
    return steps.hasActed;
  };
  const count = await countSteps(async (steps) => {
    await newMessage();
    const [port = 0] = await freePorts(1);
    const proxy = await StepProxy.start(databasePort(), steps);
    const receiver = await startReceiver(port, proxy.port);
    await succeed(() => run("sender.js", [], environment(databasePort(), { RECEIVER: urlAt(port) })));
    receiver.signal("SIGKILL");
    await proxy.close();
  });
  await atEachStep(count, 1, work);
}
