import type { Io } from "../src/io.js";

/** Keeps what a command prints. */
export class MemoryIo implements Io {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly isInteractive = false;
  readonly hasColours: boolean = false;
  readonly isStatusLine: boolean = false;
  stdout = "";
  stderr = "";

  constructor(environment: Readonly<Record<string, string | undefined>> = {}) {
    this.environment = environment;
  }

  out(text: string): void {
    this.stdout += text;
  }

  tell(text: string): void {
    this.stdout += text;
  }

  err(text: string): void {
    this.stderr += text;
  }
}
