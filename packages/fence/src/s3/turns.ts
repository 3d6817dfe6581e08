/** As long as a slow store takes for one write; then whoever waits doesn't wait any longer. */
const turnMsMax = 1_000;

/**
 * Lets calls on one resource follow each other: at once they would only make each other's conditional writes fail. Nothing rests on it. A
 * turn ends with its call or when it has run for a second, so neither a slow caller nor a call within a call holds anybody up for good.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  async take<T>(resource: string, call: () => Promise<T>): Promise<T> {
    const before = this.#last.get(resource);
    let end = (): void => {};
    const turn = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last.set(resource, turn);
    await before;
    const timer = setTimeout(end, turnMsMax);
    try {
      return await call();
    } finally {
      clearTimeout(timer);
      end();
      if (this.#last.get(resource) === turn) this.#last.delete(resource);
    }
  }
}
