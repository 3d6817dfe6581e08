/** One request to change the members, asked of a host as a client's frame would: past the network, through the gateway. */
import type { ClientConnection, NodeHost } from "@holdfast/server";
import type { MembershipChange } from "@holdfast/raft";
import { limits } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { probed } from "./host-access.js";

export interface AdminRequest extends MembershipChange {
  readonly isForced: boolean;
}

/** "completed", or why not. */
export type OnAnswer = (answer: string) => void;

/** Far from those that the listener gives. */
const connectionId = 1_000_000_000;
const questionId = 1;

export class AdminCall {
  readonly #request: AdminRequest;
  readonly #onAnswer: OnAnswer;
  #close: (() => void) | null = null;
  /** Asks its node's queue; null before it lies there. */
  #isTaken: (() => boolean) | null = null;
  #isOver = false;

  constructor(request: AdminRequest, onAnswer: OnAnswer) {
    this.#request = request;
    this.#onAnswer = onAnswer;
  }

  /** Its node may come to it yet: no configuration shows what it asks for. */
  get isWaiting(): boolean {
    return this.#isTaken === null ? !this.#isOver : !this.#isTaken();
  }

  begin(host: NodeHost): void {
    if (this.#isOver) return;
    const { gateway } = host;
    const connection: ClientConnection = {
      id: connectionId,
      remote: "admin:1",
      send: (message) => this.#onMessage(message),
      pause: () => undefined,
      resume: () => undefined,
      close: () => undefined,
    };
    this.#close = () => gateway.onClosed(connection);
    gateway.onOpened(connection);
    const messages: readonly ClientMessage[] = [
      {
        kind: "hello",
        protocol: limits.protocolVersion,
        features: [],
        clusterId: null,
        seenIndex: 0,
        info: "administrator",
      },
      { kind: "changeMembers", id: questionId, ...this.#request },
    ];
    gateway.onFrame(connection, { bytes: 0, messages: () => messages });
    const { clients } = probed(host).queue;
    const frame = clients.newestFrame;
    this.#isTaken = () => clients.hasTaken(frame);
  }

  /** Hangs up: what was asked may happen all the same. Does nothing once it is answered. */
  abandon(): void {
    this.#isOver = true;
    this.#close?.();
    this.#close = null;
  }

  #onMessage(message: ServerMessage): void {
    if (this.#isOver) return;
    if (message.kind === "membersChanged") this.#end("completed");
    else if (message.kind === "refused") {
      const { refusal } = message;
      this.#end(refusal.code === "change_refused" ? refusal.reason : refusal.code);
    }
  }

  #end(answer: string): void {
    this.abandon();
    this.#onAnswer(answer);
  }
}
