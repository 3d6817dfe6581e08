import { InvalidArgumentError } from "../errors.js";
import type { FenceSource } from "../fence.js";
import { Guard } from "../guard.js";
import type { FenceRegister } from "../guard.js";

/** Any guard that keeps one fence per resource by a read: `fileGuard`, `s3Guard`, a `Guard` over a store of yours. */
export interface FenceKeeper {
  read(lock: FenceSource): Promise<unknown>;
}

/** @throws InvalidArgumentError naming `options.fences`. */
export function keeperOf(fences: FenceRegister<unknown> | FenceKeeper): FenceKeeper {
  const parts = fences as Partial<FenceRegister<unknown>> | null | undefined;
  if (typeof parts?.read !== "function") {
    throw new InvalidArgumentError(
      "options.fences",
      "must be memoryRegister(), a register, or a guard with read(lock)",
    );
  }
  return typeof parts.compareAndSet === "function"
    ? new Guard(parts as FenceRegister<unknown>)
    : (fences as FenceKeeper);
}
