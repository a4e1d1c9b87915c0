/** A sandbox one of whose nodes does not start: it goes on, and says so. */
import { renameSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { shale } from '../../test/cli/shale-process.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { noDirectoryNodes } from '../../test/fixtures/test-node.ts';
import { type Cluster, clearCluster, startCluster } from './cluster.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { type SandboxLayout, sandboxLayout } from './layout.ts';
import { directoryNodeLayout } from './node/directory-host.ts';
import { runWithNode } from './programs.ts';

const MINUTE = 60_000;
const BROKEN = 'worker-2';
const SHALE = path.join(import.meta.dirname, '../../cli/main.ts');
const title = `a cluster one machine of which does not boot${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, () => {
  const stop = new AbortController();
  const progress: string[] = [];
  let layout: SandboxLayout;
  let controlPlane: ControlPlane;
  let cluster: Cluster;
  beforeAll(
    async () => {
      layout = sandboxLayout(await mkdtemp(path.join(tmpdir(), 'shale-cluster-')));
      controlPlane = await startControlPlane({}, stop.signal);
      await writeFile(layout.kubeconfig, controlPlane.kubeconfig(), { mode: 0o600 });
      const bootLoader = path.join(directoryNodeLayout(layout.node(BROKEN)).sysroot, 'boot/loader');
      cluster = await startCluster({
        layout,
        controlPlane,
        nodes: 'directory',
        shale: (program = SHALE) => runWithNode(program),
        onProgress: (what) => {
          progress.push(what);
          if (what === 'Booting the nodes') renameSync(bootLoader, `${bootLoader}.away`);
        },
        log: pino({ enabled: false }),
        signal: AbortSignal.any([stop.signal, deadline(5 * MINUTE)]),
      });
    },
    patience(5 * MINUTE),
  );
  afterAll(async () => {
    stop.abort();
    await cluster.ended;
    await controlPlane.stop();
    await clearCluster(layout);
    await rm(layout.dir, { recursive: true });
  }, patience(MINUTE));

  test('says which one and why while it starts, and starts without it', () => {
    expect(progress).toContainEqual(
      expect.stringMatching(
        /^worker-2: the machine did not come up: .*: no deployment to boot; .*; trying again$/,
      ),
    );
    expect(progress.at(-1)).toMatch(
      /^worker-2: the sandbox machine did not come up: .*no deployment to boot/,
    );
  });

  test('reports it on its Node, and the others go on', async () => {
    const { items } = await cluster.client.list(Nodes);
    const reasons = items.map(({ metadata, status }) => [
      metadata.name,
      status?.conditions?.find(({ type }) => type === 'Ready')?.reason,
    ]);
    expect(Object.fromEntries(reasons)).toEqual({
      'control-plane-0': 'KubeletReady',
      'infra-0': 'KubeletReady',
      'worker-0': 'KubeletReady',
      'worker-1': 'KubeletReady',
      'worker-2': 'MachineDidNotBoot',
    });
    const nodes = await cluster.client.list(MachineConfigNodes);
    const running = nodes.items
      .filter(({ status }) => status?.mode === 'Standard')
      .map(({ metadata }) => metadata.name);
    expect(running.toSorted()).toEqual(['infra-0', 'worker-0', 'worker-1']);
  });

  test('has a status that names it', async () => {
    const { exitCode, stdout } = await shale(['status'], {
      env: { KUBECONFIG: layout.kubeconfig, HOME: layout.dir },
    });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^worker-2 +worker .*not ready: the sandbox machine did not come up: .*no deployment/m,
    );
  });
});
