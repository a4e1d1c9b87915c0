import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { nodeConfigOf } from '../records/current.ts';
import { readManagedPaths } from '../records/managed-paths.ts';
import { contentDigestAt } from '../tree/read-tree.ts';
import { writeConfig } from './write-config.ts';

test("a path of /etc is on record as Shale's before it is written", async () => {
  const { context, root } = await stepUnderTest();
  const { relabel, setPasswords } = context.ports;
  const { rendered } = standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]);
  let onRecord: readonly string[] | undefined;

  await writeConfig(
    { root, stateDir: path.join(root, 'var/lib/shale'), relabel, setPasswords },
    { from: emptyNodeConfig, to: nodeConfigOf(rendered) },
    {
      signal: context.signal,
      beforeStep: async (step) => {
        if (step === 'file /etc/app.conf') onRecord = (await readManagedPaths(root)).get('/etc/app.conf');
      },
    },
  );

  expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
  expect(onRecord).toContain(await contentDigestAt(root, '/etc/app.conf'));
});
