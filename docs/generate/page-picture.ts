import { createHash } from 'node:crypto';
import pino from 'pino';
import { ALLOWED } from '../../page/server/access.ts';
import { LiveView } from '../../page/server/live-view.ts';
import { readAssets } from '../../page/server/page-assets.ts';
import { startPageServer } from '../../page/server/page-server.ts';
import { buildPage, startBrowser } from '../../test/page/browser.ts';
import { aFleet } from '../../test/page/fleet.ts';
import { memoryCaches } from '../../test/page/memory-caches.ts';

/** The picture of the live page, docs/live-page.png: a fleet in a rollout, at one moment. */

const NOW = Date.UTC(2026, 10, 28, 12);
const SIZES = { worker: 12, infra: 5 };
const log = pino({ level: 'silent' });

/** @returns what the page shows: the same each time. */
async function picturedView(): Promise<LiveView> {
  const live = new LiveView({
    caches: memoryCaches(aFleet(SIZES, NOW)),
    log,
    inMaintenance: async () => new Set(),
    now: () => NOW,
  });
  const stop = new AbortController();
  const seen = Promise.withResolvers<void>();
  const unfollow = live.follow(seen.resolve);
  const running = live.run(stop.signal);
  await Promise.race([seen.promise, running]);
  unfollow();
  stop.abort();
  await running;
  return live;
}

/**
 * Needs no browser. Comments, formatting and local names of the page's sources don't count, because its bundle has
 * none.
 *
 * @returns the digest of what a browser draws the picture from: the built page and the view that it receives.
 */
export async function pageDigest(): Promise<string> {
  const built = await buildPage();
  try {
    const hash = createHash('sha256').update((await picturedView()).snapshot());
    for (const [name, { body }] of [...(await readAssets(built.directory))].sort(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      hash.update(`\n${name}\n`).update(body);
    }
    return `sha256:${hash.digest('hex')}`;
  } finally {
    await built.remove();
  }
}

/** @param file where to write the picture. @throws the error of the build, or of chromium. */
export async function drawPage(file: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const built = stack.adopt(await buildPage(), ({ remove }) => remove());
  const server = stack.adopt(
    await startPageServer({
      live: await picturedView(),
      assets: await readAssets(built.directory),
      access: { authorize: async () => ALLOWED },
      // The panel of a change is closed in the picture.
      changes: { read: async () => undefined },
      cluster: 'prod',
      port: 0,
      host: '127.0.0.1',
      log,
    }),
    (each) => each.close(),
  );
  const browser = stack.adopt(await startBrowser(), (each) => each.close());
  await browser.context.clock.setFixedTime(NOW);
  const { page } = await browser.open(`http://127.0.0.1:${server.port}/`);
  await page.setViewportSize({ width: 1440, height: 1130 });
  await page.getByRole('article', { name: 'Pool worker' }).waitFor();
  await page.screenshot({ path: file, animations: 'disabled' });
}
