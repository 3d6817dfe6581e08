import assert from "node:assert/strict";
import { createServer } from "node:net";
import { it } from "node:test";
import { freePorts, rangeFrom } from "../src/free-ports.js";

const host = "127.0.0.1";

it("free ports differ, can be listened at, and lie where no connection takes them away", async () => {
  const ports = await freePorts(host, 20);
  assert.equal(new Set(ports).size, 20);
  for (const port of ports) {
    assert.ok(rangeFrom() < 21_000 || port < rangeFrom(), `${port} may become the local port of a connection`);
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    await new Promise((resolve) => server.close(resolve));
  }
});
