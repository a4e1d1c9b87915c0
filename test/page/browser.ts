import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { build } from 'vite';
import { root } from '../cli/shale-process.ts';

/** Debian's. */
const CHROMIUM = '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** Where pictures are left for people to look at. */
const PICTURES = path.join(root, '.shale/page');

/** A real browser, what it was refused, and whom it asked. */
export interface BrowserUnderTest {
  readonly context: BrowserContext;
  /** @returns a page, and what went wrong on it: errors, violations of the policy, requests elsewhere. */
  open(url: string): Promise<{ readonly page: Page; readonly complaints: readonly string[] }>;
  /** Leaves a picture of the page in .shale/page. */
  picture(page: Page, name: string): Promise<void>;
  close(): Promise<void>;
}

export async function startBrowser(): Promise<BrowserUnderTest> {
  const profile = await mkdtemp(path.join(tmpdir(), 'shale-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    args: FLAGS,
    viewport: { width: 1440, height: 900 },
    timezoneId: 'Europe/Berlin',
  });
  await mkdir(PICTURES, { recursive: true });
  return {
    context,
    async open(url) {
      const page = await context.newPage();
      const complaints: string[] = [];
      const origin = new URL(url).origin;
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== origin) complaints.push(`request to ${request.url()}`);
      });
      await page.goto(url);
      return { page, complaints };
    },
    async picture(page, name) {
      await page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true });
    },
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Builds the page as `npm run build:page` does, into a folder of its own. */
export async function buildPage(): Promise<{ readonly directory: string; remove(): Promise<void> }> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-page-'));
  await build({
    configFile: path.join(root, 'page/vite.config.ts'),
    build: { outDir: directory },
    logLevel: 'warn',
  });
  return { directory, remove: () => rm(directory, { recursive: true }) };
}
