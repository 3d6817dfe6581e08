/** What a command reads from and writes to; tests hand in their own. */
export interface Io {
  /** A result: a command whose result can't be written has failed. */
  out(text: string): void;
  /** To stdout as well, for whoever looks: what can't be written is dropped. */
  tell(text: string): void;
  /** What can't be written is dropped. */
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Stdin is a terminal. */
  readonly isInteractive: boolean;
  /** Stdout is a terminal, and nobody has asked it to stay plain: NO_COLOR (no-color.org), TERM=dumb. */
  readonly hasColours: boolean;
  /** Stderr is a terminal whose last line can be written over. */
  readonly isStatusLine: boolean;
}

export interface ProcessIo {
  readonly io: Io;
  /** Resolves when all is written or dropped: why a result could not be written, null when every one was. */
  readonly flush: () => Promise<NodeJS.ErrnoException | null>;
}

/** From now on a reader that goes away (EPIPE) or a full disk (ENOSPC) at stdout or stderr ends nothing in this process. */
export function processIo(): ProcessIo {
  const { stdout, stderr } = process;
  let problem: NodeJS.ErrnoException | null = null;
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  const io: Io = {
    out: (text) => {
      stdout.write(text, (error) => {
        problem ??= error ?? null;
      });
    },
    tell: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    environment: process.env,
    isInteractive: process.stdin.isTTY === true,
    hasColours: stdout.isTTY === true && isCapable(process.env) && !process.env["NO_COLOR"],
    isStatusLine: stderr.isTTY === true && isCapable(process.env),
  };
  const flush = async (): Promise<NodeJS.ErrnoException | null> => {
    for (const stream of [stdout, stderr]) await new Promise<void>((resolve) => stream.write("", () => resolve()));
    return problem;
  };
  return { io, flush };
}

function isCapable({ TERM: terminal }: Io["environment"]): boolean {
  return terminal !== "dumb";
}
