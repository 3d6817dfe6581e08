/**
 * The guard of HTTP handlers behind the interface of the one suite: a server of this process that keeps notes in a store that compares
 * nothing, and changes them in several steps.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { fenceOf, sequencerKeys } from "@holdfast/fence";
import type { FenceRegister } from "@holdfast/fence";
import { fencedFetch, httpGuard, memoryRegister } from "@holdfast/fence/http";
import { until } from "../../harness/until.js";
import type { GuardedStore, NamedFence, Place, StoreKind, Stored } from "../guarded-store.js";
import { unavailable } from "../guarded-store.js";
import { newSigner, signerOf } from "../signer.js";

interface Note {
  readonly body: string | null;
  readonly lines: readonly string[];
}

const empty: Note = { body: null, lines: [] };

function resourceOf(request: IncomingMessage): string {
  return new URL(request.url ?? "", "http://localhost").searchParams.get("resource") ?? "";
}

class NotesServer {
  readonly #notes = new Map<string, Note>();
  readonly #busy = new Map<string, number>();
  readonly #register: FenceRegister<unknown> = memoryRegister();
  readonly #signer = newSigner();
  readonly #server = createServer((request, response) => {
    const serve = request.method === "REPORT" ? this.#tell : this.#guarded;
    serve(request, response).catch(() => response.destroy());
  });
  readonly #guarded = httpGuard({
    keys: sequencerKeys({ keys: [this.#signer.publicKey] }),
    fences: this.#register,
    waitingMax: 1_000,
  }).node(resourceOf, (request, response) => this.#change(request, response));

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/#${this.#signer.secret}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** A look, a while, and a write: another handler's would fit between. */
  async #change(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const resource = resourceOf(request);
    this.#busy.set(resource, (this.#busy.get(resource) ?? 0) + 1);
    try {
      const text = Buffer.concat(await request.toArray()).toString("utf8");
      const note = this.#notes.get(resource) ?? empty;
      await turn();
      if (request.method === "PUT") this.#notes.set(resource, { ...empty, body: text });
      if (request.method === "POST") this.#notes.set(resource, { ...note, lines: [...note.lines, text] });
      if (request.method === "DELETE") this.#notes.delete(resource);
      response.end(JSON.stringify(note));
    } finally {
      this.#busy.set(resource, (this.#busy.get(resource) ?? 0) - 1);
    }
  }

  /** Fence and data aren't one step here: in the midst of a turn the fence is ahead. So this is told between turns. */
  readonly #tell = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const resource = resourceOf(request);
    await until("no handler is at work", () => (this.#busy.get(resource) ?? 0) === 0, 30_000, 1);
    const note = this.#notes.get(resource) ?? empty;
    const token = (await this.#register.read(resource))?.record.token ?? null;
    response.end(JSON.stringify({ ...note, token }));
  };
}

async function open(address: string): Promise<GuardedStore> {
  const signer = signerOf(new URL(address).hash.slice(1));
  const urlOf = (resource: string): string => `${new URL(address).origin}/?resource=${encodeURIComponent(resource)}`;
  const call = async (source: NamedFence, method: string, body?: string): Promise<Note> => {
    const { resource = "", token } = fenceOf(source);
    const init = body === undefined ? { method } : { method, body };
    const response = await fencedFetch(signer.lock(resource, token), urlOf(resource), init);
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as Note;
  };
  return {
    write: async (fence, body) => void (await call(fence, "PUT", body)),
    read: async (fence) => (await call(fence, "GET")).body,
    append: async (fence, line) => void (await call(fence, "POST", line)),
    remove: async (fence) => void (await call(fence, "DELETE")),
    writeAll: unavailable,
    stored: async (resource) => (await (await fetch(urlOf(resource), { method: "REPORT" })).json()) as Stored,
    close: async () => {},
  };
}

export const httpHandlers: StoreKind = {
  kind: "HTTP handlers",
  guard: "http",
  remembersRemoved: true,
  changesSeveral: false,
  crashes: false,
  reportsElsewhere: true,
  takesLockNames: true,
  skip: false,
  start: async (): Promise<Place> => {
    const server = new NotesServer();
    return { address: await server.start(), stop: () => server.stop(), crash: unavailable };
  },
  open,
};
