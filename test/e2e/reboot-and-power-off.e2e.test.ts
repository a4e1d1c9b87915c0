/** What a person does to a machine by the command, from the request to the machine itself. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(7 * MINUTE);
const title = `by the command${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(3 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      const standard = async () => (await sandbox.nodesIn('Standard')).length === 4;
      await until('every node is in standard mode', standard);
    },
    patience(3 * MINUTE),
  );
  afterAll(() => sandbox.stop(), patience(MINUTE));

  const nodeOf = (name: string) => sandbox.client.get(Nodes, name, { signal });
  const bootOf = ({ status }: Node) => status?.nodeInfo?.bootID;
  const ready = (name: string) => async () => isReady(await nodeOf(name));

  test('a node reboots, and serves again under nobody’s lease', async () => {
    const before = await nodeOf('worker-0');
    const { status: was } = await sandbox.client.get(MachineConfigNodes, 'worker-0', { signal });
    const run = await sandbox.shale(
      'reboot',
      'worker-0',
      '--reason',
      'new BIOS',
      '--wait',
      '--timeout',
      '2m',
    );
    expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/requested a reboot\ndone$/) });
    const after = await nodeOf('worker-0');
    expect(bootOf(after)).not.toBe(bootOf(before));
    expect(isReady(after)).toBe(true);
    const { status } = await sandbox.client.get(MachineConfigNodes, 'worker-0', { signal });
    expect(status?.configVersion?.current).toBe(was?.configVersion?.current);
    await until('nothing is left of the work on it', async () => {
      const { spec } = await nodeOf('worker-0');
      const lease = await sandbox.client.find(Leases, 'node-worker-0', {
        namespace: 'medik8s-leases',
        signal,
      });
      return spec?.unschedulable !== true && !lease?.spec?.holderIdentity;
    });
  });

  test('a node is drained and powered off, waited for by nobody, and comes back', async () => {
    const start = [
      'maintenance',
      'start',
      'worker-1',
      '--reason',
      'new disk',
      '--power-off',
      '--timeout',
      '2m',
    ];
    const off = await sandbox.shale(...start);
    expect(off).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('worker-1: powered off') });
    expect(isReady(await nodeOf('worker-1'))).toBe(false);
    const listed = await sandbox.shale('maintenance', 'list');
    expect(listed.stdout).toMatch(/^worker-1 .*new disk/m);
    const { status } = await sandbox.client.get(MachineConfigPools, 'worker', { signal });
    expect(status?.conditions?.find(({ type }) => type === 'Degraded')?.status).toBe('False');
    expect(await sandbox.shale('maintenance', 'end', 'worker-1')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('it was powered off and is not Ready; power it on'),
    });

    await writeFile(path.join(sandbox.layoutOf('worker-1').dir, 'power-on'), '');
    await until('it runs again', ready('worker-1'));
    expect(await sandbox.shale('maintenance', 'end', 'worker-1')).toMatchObject({ exitCode: 0 });
    await until('it serves again', async () => (await nodeOf('worker-1')).spec?.unschedulable !== true);
  });
});
