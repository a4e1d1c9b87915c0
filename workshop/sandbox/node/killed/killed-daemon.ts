import { readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { enableCompileCache, flushCompileCache, syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import { FILLER, fillDisk } from './full-disk.ts';

/**
 * A node's daemon that dies by SIGKILL before one of its changes of the disk, or finds the disk full from then on, for the
 * tests beside it. It runs on when there are no more changes than that.
 *
 *   node killed-daemon.ts <node's directory> <node's name> <settings file> kill|fill <number of changes to make before>
 */
const Settings = z.object({
  url: z.string(),
  token: z.string(),
  caPem: z.string(),
  compileCache: z.string(),
  images: z.array(
    z.object({
      name: z.string(),
      labels: z.record(z.string(), z.string()),
      files: z.array(z.object({ path: z.string(), content: z.string(), mode: z.number() })),
    }),
  ),
});
const [dir = '', nodeName = '', settingsFile = '', fault = '', changes = ''] = process.argv.slice(2);
const settings = Settings.parse(JSON.parse(readFileSync(settingsFile, 'utf8')));
// Hundreds of these processes start one after another, and compiling is most of what each of them costs.
enableCompileCache(settings.compileCache);

function strike(): void {
  if (fault === 'kill') process.kill(process.pid, 'SIGKILL');
  else fillDisk(path.join(dir, FILLER));
}

let left = Number(changes);
/** Everything that the daemon puts in place it puts there by one of these. */
for (const name of ['rename', 'symlink', 'unlink', 'rm', 'link', 'mkdir'] as const) {
  const change = promises[name] as (...args: unknown[]) => Promise<unknown>;
  Object.assign(promises, {
    [name]: async (...args: unknown[]) => {
      if (left === 0) strike();
      left -= 1;
      return change(...args);
    },
  });
}
syncBuiltinESMExports();

// Only now: what was imported before would still have the functions as they were.
const { pino } = await import('pino');
const { parseDigestedPullspec } = await import('../../../../api/references.ts');
const { tokenConnection } = await import('../../../../cluster/connection.ts');
const { createApiClient } = await import('../../../../cluster/http-api-client.ts');
const { shutdownSignal } = await import('../../../../cluster/signals.ts');
const { directoryNode } = await import('../../../../daemon/host/directory-node.ts');
const { memorySource } = await import('../../../../daemon/os/ostree/memory-source.ts');
const { runDaemon } = await import('../../../../daemon/run.ts');
const { stockImage } = await import('../stock-image.ts');
const { layerFile } = await import('../testing.ts');
// Otherwise written at the end of the process, which SIGKILL doesn't wait for.
flushCompileCache();

const images = settings.images.map(({ name, labels, files }) => {
  const layer = files.map(({ path, content, mode }) => layerFile(path, content, mode));
  const layers = [stockImage(), ...(layer.length === 0 ? [] : [layer])];
  return [parseDigestedPullspec(name), { labels, layers }] as const;
});
await runDaemon({
  ports: directoryNode(dir, memorySource(new Map(images))),
  client: createApiClient(tokenConnection(settings.url, settings.token, settings.caPem)),
  nodeName,
  actionLimitMs: 10_000,
  // What fails once is not waited for.
  healthLimits: { checksMs: 1, kubeletMs: 1 },
  backoff: { firstMs: 50, longestMs: 500 },
  log: pino({ level: 'silent' }),
  signal: shutdownSignal(),
});
