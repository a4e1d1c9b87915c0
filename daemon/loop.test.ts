import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { DaemonSet } from '../api/kubernetes.ts';

const MANIFEST = path.join(import.meta.dirname, '../manifests/base/daemon.yaml');

const PROGRAM = `
  import { giveBackMemory } from ${JSON.stringify(path.join(import.meta.dirname, 'loop.ts'))};
  let work = Array.from({ length: 500_000 }, (_, index) => ({ index }));
  const atWork = process.memoryUsage().heapUsed;
  work = work.length;
  giveBackMemory();
  process.stdout.write(JSON.stringify({ atWork, after: process.memoryUsage().heapUsed }));
`;

test('what work has left is given back by a daemon with the options of its manifest', async () => {
  const daemonSet = parse(await readFile(MANIFEST, 'utf8')) as DaemonSet;
  const [container] = daemonSet.spec.template.spec.containers;
  const options = container?.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
  const { stdout } = await execa(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    env: { NODE_OPTIONS: options },
  });
  const { atWork, after } = JSON.parse(stdout) as { atWork: number; after: number };
  expect(after).toBeLessThan(atWork / 2);
});
