/** A process of its own: what keeps it alive, and what doesn't. Says its steps on stdout; ends by itself if nothing holds it. */
import { connect } from "../../src/connect.js";

const [scenario = "", endpoints = ""] = process.argv.slice(2);

function say(step: string): void {
  process.stdout.write(`${step}\n`);
}

process.on("exit", (code) => say(`exit ${code}`));
const holdfast = await connect({ endpoints, ttlMs: 2_000 });
switch (scenario) {
  case "holds": {
    // Nothing is awaited any more: neither renewals nor the socket hold the process.
    const lock = await holdfast.acquire(scenario);
    say(lock.state);
    break;
  }
  case "waits": {
    say("waiting");
    const lock = await holdfast.acquire("held", { waitMs: Number.POSITIVE_INFINITY });
    say(lock.state);
    break;
  }
  case "releases": {
    const lock = await holdfast.acquire(scenario);
    say(await lock.release());
    await holdfast.close();
    say("closed");
    break;
  }
  case "lonely": {
    // The cluster goes away: an idle client doesn't keep its process by trying to reach it.
    await holdfast.acquire(scenario);
    say("alone");
    break;
  }
  default:
    say(`no scenario ${scenario}`);
}
