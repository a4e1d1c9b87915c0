/** A sandbox of four machines with systemd; the other tests of the lab boot one. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/log.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { connectWith } from '../../workshop/sandbox/control-plane.ts';
import { sandboxLayout } from '../../workshop/sandbox/layout.ts';
import { startSandbox } from '../../workshop/sandbox/start.ts';
import { readMachineRecord } from '../../workshop/sandbox/systemd-node/machine.ts';
import { createChanges, waitUntil } from '../../workshop/sandbox/wait-until.ts';
import { deadline } from '../fixtures/patience.ts';
import { isDrawn } from '../fixtures/sample.ts';
import { FIRST_TIME_MS, noLab } from './lab.ts';

const NODES = 4;
const UPDATED_MS = 180_000;

// Four machines; the other tests of the lab boot one.
test.skipIf(noLab !== undefined || !isDrawn('sandbox of machines with systemd'))(
  "a sandbox's machines with systemd run what their pool asks for, and are gone with it",
  async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-sandbox-'));
    const ending = new AbortController();
    const sandbox = await startSandbox({
      dir,
      choice: { assets: undefined, kubeconfig: undefined },
      nodes: 'systemd',
      onProgress: () => undefined,
      signal: deadline(FIRST_TIME_MS),
    });
    const leaders: number[] = [];
    try {
      const client = createApiClient(await connectWith(sandbox.record.access));
      const nodes = createInformer(client, MachineConfigNodes, { log: createLogger('test', 'silent') });
      const changes = createChanges();
      nodes.onChange(() => changes.notify());
      const watching = nodes.start(ending.signal);
      await waitUntil({
        what: 'every node is Updated',
        changes,
        look: () => {
          const done = nodes.list().filter(({ status }) => conditionIsTrue(status?.conditions, 'Updated'));
          return done.length === NODES ? { met: true } : { seen: `${done.length} of ${NODES} are Updated` };
        },
        deadlineMs: UPDATED_MS,
        signal: ending.signal,
      });
      ending.abort();
      await watching;
      for (const { metadata } of nodes.list()) {
        leaders.push((await readMachineRecord(sandboxLayout(dir).node(metadata.name))).leader);
      }
      const inits = await Promise.all(leaders.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8')));
      expect(inits).toEqual(Array(NODES).fill('systemd\n'));
    } finally {
      ending.abort();
      await sandbox.stop();
    }
    expect(await commandsNaming(dir)).toEqual([]);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(dir);
    expect(await readdir(dir)).not.toContain('nodes');
    await rm(dir, { recursive: true, force: true });
  },
  FIRST_TIME_MS + UPDATED_MS,
);

/** @returns command lines of processes that name the directory. */
async function commandsNaming(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.includes(directory));
}
