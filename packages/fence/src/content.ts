import { InvalidArgumentError } from "./errors.js";
import type { FenceSource } from "./fence.js";

/** What guards of one content per resource have in common. */
export interface ContentGuard {
  /** Replaces the content. */
  write(lock: FenceSource, content: string | Uint8Array): Promise<void>;
  /** Replaces the content by what `change` makes of it. It is called again when another writer comes between. */
  update(
    lock: FenceSource,
    change: (current: Buffer | null) => string | Uint8Array | PromiseLike<string | Uint8Array>,
  ): Promise<Buffer>;
  /** Raises the register and resolves with the content. */
  read(lock: FenceSource): Promise<Buffer | null>;
  /** Removes the content; the token stays. */
  remove(lock: FenceSource): Promise<void>;
  /** The newest content, for whoever holds no lock and writes nothing that depends on it. */
  readNewest(resource: string): Promise<Buffer | null>;
}

/**
 * A copy: what the caller does to its bytes afterwards is not part of the write.
 * @throws InvalidArgumentError naming `argument`.
 */
export function contentBytes(content: unknown, argument: string): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof Uint8Array) return Buffer.from(content);
  throw new InvalidArgumentError(argument, "must be a string or a Uint8Array");
}
