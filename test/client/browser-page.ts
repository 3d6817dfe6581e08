/** A page in a real Chromium (Debian's), served from an origin of its own, that has the bundled client. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { driver, skipWithoutDriver } from "../fence/drivers.js";
import { bundleForBrowser } from "./bundle.js";

const executablePath = process.env["HOLDFAST_TEST_CHROMIUM"] ?? "/usr/bin/chromium";
/** Nothing of the network but what the page asks for. */
const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const launchMs = 60_000;

/** The part of playwright-core that is used. */
export interface Page {
  goto(url: string): Promise<unknown>;
  evaluate<Argument, Result>(run: (given: Argument) => Result, given: Argument): Promise<Awaited<Result>>;
  waitForFunction(run: () => unknown, argument?: undefined, options?: { readonly timeout?: number }): Promise<unknown>;
}

interface Browser {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

interface Playwright {
  readonly chromium: { launch(options: object): Promise<Browser> };
}

/** Where the page finds the package. */
export const program = 'import * as client from "@holdfast/client"; globalThis.client = client;';

/** For a test's `skip`: what to do, or false. */
export function skipWithoutChromium(): string | false {
  for (const name of ["esbuild", "playwright-core"]) {
    const reason = skipWithoutDriver(name);
    if (reason !== false) return reason;
  }
  if (existsSync(executablePath)) return false;
  return "Chromium is not installed: run `apt-get install chromium`, or name one in HOLDFAST_TEST_CHROMIUM";
}

export interface PageServer {
  /** As the browser says it in `Origin`. */
  readonly origin: string;
  close(): void;
}

export async function servePage(): Promise<PageServer> {
  const { text } = await bundleForBrowser(program);
  const server = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(
      isScript ? text : '<!doctype html><title>page</title><script type="module" src="/client.js"></script>',
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Its profile is new, and gone at the end. */
export function launchChromium(): Promise<Browser> {
  const { chromium } = driver("playwright-core") as Playwright;
  return chromium.launch({ executablePath, args: flags, timeout: launchMs });
}

/** Loaded, with the client there. */
export async function openPage(browser: Browser, origin: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${origin}/`);
  await page.waitForFunction(() => "client" in globalThis);
  return page;
}
