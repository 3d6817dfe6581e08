/**
 * A process of a party that tests speak to in lines of JSON: it listens, dials, sends bytes, and says how many it has got from anybody.
 * Ends with its standard input.
 */
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";

export type Question =
  | { readonly ask: "listen"; readonly address: string }
  | { readonly ask: "dial"; readonly address: string }
  | { readonly ask: "send"; readonly bytes: number }
  | { readonly ask: "state" };

export interface State {
  readonly received: number;
  /** Of the connection that was dialled. */
  readonly connected: boolean;
  /** Codes of the errors of all connections. */
  readonly errors: readonly string[];
}

let received = 0;
let connected = false;
const errors: string[] = [];
const sockets: Socket[] = [];

function watch(socket: Socket): void {
  sockets.push(socket);
  socket.setNoDelay(true);
  socket.on("data", (data) => {
    received += data.length;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => errors.push(error.code ?? error.message));
}

function partsOf(address: string): { host: string; port: number } {
  const [host = "", port] = address.split(":");
  return { host, port: Number(port) };
}

async function answer(question: Question): Promise<State> {
  if (question.ask === "listen") {
    const server = createServer(watch);
    await new Promise<void>((resolve) => server.listen(partsOf(question.address), resolve));
  }
  if (question.ask === "dial") {
    const socket = connect(partsOf(question.address), () => {
      connected = true;
    });
    watch(socket);
  }
  if (question.ask === "send") for (const socket of sockets) socket.write(Buffer.alloc(question.bytes));
  return { received, connected, errors };
}

const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  void answer(JSON.parse(line) as Question).then((state) => process.stdout.write(`${JSON.stringify(state)}\n`));
});
input.on("close", () => process.exit());
