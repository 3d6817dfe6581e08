/** What a command reads from and writes to; tests hand in their own. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Stdin is a terminal. */
  readonly isInteractive: boolean;
}

export function processIo(): Io {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    isInteractive: process.stdin.isTTY === true,
  };
}
