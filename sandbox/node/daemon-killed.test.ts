import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Leases, Namespaces } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import { type ClusterPolicies, MachineConfigurations } from '../../api/machine-configuration.ts';
import { DEFAULT_LEASE_NAMESPACE, imageLabels, MACHINE_CONFIGURATION } from '../../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../daemon/host/directory-host.ts';
import { readServiceRecords } from '../../daemon/host/service-recorder.ts';
import { nodeConfigOf } from '../../daemon/prepare/rendered-config.ts';
import type { Rendered } from '../../daemon/records/current.ts';
import { verifyConfig } from '../../daemon/standard/verify-config.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import { type ApiServer, startApiServer } from '../apiserver/start.ts';
import { applyObjects } from '../manifests/apply.ts';
import { bootNode } from './boot.ts';
import { removeNode } from './remove.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from './testing.ts';

/**
 * The daemon is killed before each of its changes of the disk in turn, started again, and has to come to where it was
 * going: whole, without another reboot than the update asks for, without a restart that it does not ask for.
 */

const NODE = 'node-0';
const HOLDER = 'shale-operator';
const CHRONY = '/etc/chrony.conf';
const DEADLINE_MS = 30_000;
/** Every change is a point to be killed at; CI takes each of so many, all of them with SHALE_EVERY_KILL_POINT=1. */
const STRIDE = process.env['SHALE_EVERY_KILL_POINT'] === '1' ? 1 : 12;

const restart: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };
const policies: ClusterPolicies = {
  files: [{ path: CHRONY, actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] }],
  sshkey: { actions: [{ type: 'None' }] },
};
const POLICY = policyDigest(policies);
/** A health check that never passes. */
const SICK: TestFile = {
  path: '/etc/shale/health.d/10-sick',
  content: '#!/bin/sh\necho no route\nexit 1\n',
  mode: 0o755,
};

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';

/** @returns a rendered config with something of everything that standard mode writes. */
function renderedConfig(name: string, content: string, kernelArguments: string[] = []): Rendered {
  const source = `data:,${encodeURIComponent(content)}`;
  const files = [{ path: CHRONY, mode: 0o644, overwrite: true, contents: { source } }];
  const units = [{ name: 'own.service', enabled: true, contents: UNIT }];
  const users = [{ name: 'core', passwordHash: `$6$${name}`, sshAuthorizedKeys: [`ssh-ed25519 ${name}`] }];
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: { ignition: { version: '3.4.0' }, storage: { files }, systemd: { units }, passwd: { users } },
      kernelArguments,
    },
  };
}
const rendered = [
  renderedConfig('rendered-1', 'one\n'),
  renderedConfig('rendered-2', 'two\n'),
  renderedConfig('rendered-3', 'three\n', ['quiet']),
  renderedConfig('rendered-5', 'five\n', ['quiet']),
];

let server: ApiServer;
let client: ApiClient;
let node: TestNode;
let base: string;
let layered: string;
let standard: string;
let settings: string;
interface TestFile {
  readonly path: string;
  readonly content: string;
  readonly mode: number;
}
const images: { name: string; labels: Record<string, string>; files: TestFile[] }[] = [];

beforeAll(async () => {
  if (noDirectoryNodes !== undefined) return;
  base = await mkdtemp(path.join(tmpdir(), 'shale-killed-'));
  server = await startApiServer();
  client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  await fillCluster();
  node = await createTestNode();
  images.push({ name: node.stock, labels: {}, files: [] });
  addImage('rendered-1', 'one\n', []);
  addImage('rendered-2', 'two\n', [{ config: 'rendered-1', actions: [restart] }]);
  addImage('rendered-3', 'three\n', [{ config: 'rendered-1', actions: [{ type: 'Reboot' }] }]);
  addImage('rendered-4', 'four\n', [{ config: 'rendered-1', actions: [{ type: 'Reboot' }] }], [SICK]);
  settings = path.join(base, 'settings.json');
  const { url, adminToken: token, caPem } = server;
  await writeFile(settings, JSON.stringify({ url, token, caPem, node: NODE, images }));
  // The state that most updates begin from: layered, on the first image.
  layered = path.join(base, 'layered');
  await copyNode(node.dir, layered);
  await reach(layered, toImage('rendered-1'));
  standard = path.join(base, 'standard');
  await copyNode(node.dir, standard);
  await reach(standard, toConfig('rendered-3'));
}, 120_000);
afterAll(async () => {
  if (noDirectoryNodes !== undefined) return;
  await server.stop();
  await node[Symbol.asyncDispose]();
  for (const dir of [layered, standard]) await removeNode(dir);
  await rm(base, { recursive: true });
});

async function fillCluster(): Promise<void> {
  const { signal } = new AbortController();
  await applyObjects(client, crdDefinitions.map(crdOf), { log: pino({ level: 'silent' }), signal });
  await client.create(Namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: DEFAULT_LEASE_NAMESPACE },
  });
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: `node-${NODE}` },
  } as const;
  await client.create(
    Leases,
    { ...lease, spec: { holderIdentity: HOLDER } },
    { namespace: DEFAULT_LEASE_NAMESPACE },
  );
  const made = await client.create(MachineConfigurations, {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
    spec: {},
  });
  const status = { nodeDisruptionPolicyStatus: { clusterPolicies: policies }, policyDigest: POLICY };
  await client.replaceStatus(MachineConfigurations, { ...made, status });
  for (const each of rendered) await client.create(MachineConfigs, each);
}

function addImage(
  config: string,
  content: string,
  froms: { config: string; actions: DisruptionAction[] }[],
  more: TestFile[] = [],
): void {
  const transitions = froms.map((from) => ({ ...from, base: node.stock, causes: [] }));
  const labels = {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
  };
  const files = [{ path: CHRONY, content, mode: 0o644 }, ...more];
  const layer = files.map((file) => layerFile(file.path, file.content, file.mode));
  images.push({ name: node.addImage(layer, labels), labels, files });
}

const imageOf = (config: string): DigestedPullspec =>
  parseDigestedPullspec(
    images.find(({ labels }) => labels[imageLabels.renderedConfig] === config)?.name ?? '',
  );

type Target = Pick<MachineConfigNodeSpec, 'configVersion' | 'configImage' | 'grant' | 'policyDigest'>;

function toImage(config: string): Target {
  const image = imageOf(config);
  return {
    configVersion: { desired: config },
    configImage: { desiredImage: image },
    policyDigest: POLICY,
    grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
  };
}

const toConfig = (config: string): Target => ({
  configVersion: { desired: config },
  policyDigest: POLICY,
  grant: { level: 'Disrupt', config, leaseHolder: HOLDER },
});

async function copyNode(from: string, to: string): Promise<void> {
  await execa('cp', ['--archive', from, to]);
}

function startDaemon(dir: string, changes: number): ChildProcess {
  const script = path.join(import.meta.dirname, 'killed-daemon.ts');
  return spawn(process.execPath, [script, dir, settings, String(changes)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    // A group of its own: commands of a daemon that died go on, and are ended with it when the test is through.
    detached: true,
  });
}

/** Ends what a daemon that died has left running, and waits until it is gone. */
async function endGroup({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return;
  try {
    for (;;) {
      process.kill(-pid, 'SIGKILL');
      await delay(5);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const isAt =
  ({ configVersion, configImage }: Target) =>
  ({ status }: MachineConfigNode): boolean =>
    conditionIsTrue(status?.conditions, 'Updated') &&
    status?.configVersion?.current === configVersion.desired &&
    status.mode === (configImage === undefined ? 'Standard' : 'Layered');

/** The node went back from its target, and says so. */
const isBack = ({ status }: MachineConfigNode): boolean =>
  conditionIsTrue(status?.conditions, 'NodeDegraded') && status?.lastUpdate?.result === 'RolledBack';

/** When a daemon dies: after so many changes that it makes in the boot of that number, counted from 0. */
interface Death {
  readonly boot: number;
  readonly changes: number;
}

/**
 * Runs daemons on a node until it is where it should be; one of them dies.
 *
 * @returns whether it died, which it does not when the update has fewer changes.
 */
async function reach(
  dir: string,
  target: Target,
  death?: Death,
  isThere: (object: MachineConfigNode) => boolean = isAt(target),
): Promise<boolean> {
  await client.delete(MachineConfigNodes, NODE).catch(() => undefined);
  await client.create(MachineConfigNodes, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name: NODE },
    spec: { node: { name: NODE }, pool: { name: 'worker' }, ...target },
  });
  const { rebootRequest } = directoryNodeLayout(dir);
  let killed = false;
  let boot = 0;
  const started: ChildProcess[] = [];
  const start = () => {
    const made = startDaemon(dir, death?.boot === boot && !killed ? death.changes : -1);
    started.push(made);
    return made;
  };
  let daemon = start();
  const end = Date.now() + DEADLINE_MS;
  try {
    while (!isThere(await client.get(MachineConfigNodes, NODE))) {
      if (Date.now() > end)
        throw new Error(`${JSON.stringify((await client.get(MachineConfigNodes, NODE)).status)}`);
      if (existsSync(rebootRequest)) {
        await kill(daemon);
        await rm(rebootRequest, { force: true });
        await bootNode(dir);
        boot += 1;
        daemon = start();
      } else if (daemon.signalCode !== null || daemon.exitCode !== null) {
        killed = true;
        daemon = start();
      }
      await delay(20);
    }
  } finally {
    await kill(daemon);
    for (const each of started) await endGroup(each);
  }
  return killed;
}

async function kill(daemon: ChildProcess): Promise<void> {
  if (daemon.signalCode !== null || daemon.exitCode !== null) return;
  const ended = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await ended;
}

interface Scenario {
  readonly from: () => string;
  readonly target: () => Target;
  readonly content: string;
  readonly boots: number;
  /** Whether chronyd is restarted; where it is, being killed may make it twice. */
  readonly restarts: boolean;
  /** The boot in which it is killed, counted from 0. */
  readonly killedIn?: number;
  /** Where it ends; at the target unless this says something else. */
  readonly isThere?: typeof isBack;
}

const scenarios: readonly [string, Scenario][] = [
  [
    'a live change',
    { from: () => layered, target: () => toImage('rendered-2'), content: 'two\n', boots: 0, restarts: true },
  ],
  [
    'a change that reboots',
    {
      from: () => layered,
      target: () => toImage('rendered-3'),
      content: 'three\n',
      boots: 1,
      restarts: false,
    },
  ],
  [
    'the way into layering',
    {
      from: () => node.dir,
      target: () => toImage('rendered-1'),
      content: 'one\n',
      boots: 1,
      restarts: false,
    },
  ],
  [
    'the way out of layering',
    {
      from: () => layered,
      target: () => toConfig('rendered-3'),
      content: 'three\n',
      boots: 1,
      restarts: false,
    },
  ],
  [
    'the first config of standard mode',
    {
      from: () => node.dir,
      target: () => toConfig('rendered-3'),
      content: 'three\n',
      boots: 1,
      restarts: false,
    },
  ],
  [
    'a live change of standard mode',
    {
      from: () => standard,
      target: () => toConfig('rendered-5'),
      content: 'five\n',
      boots: 0,
      restarts: true,
    },
  ],
  [
    'the way back from an image that is not healthy, before its reboot',
    {
      from: () => layered,
      target: () => toImage('rendered-4'),
      content: 'one\n',
      boots: 2,
      restarts: false,
      killedIn: 1,
      isThere: isBack,
    },
  ],
  [
    'the way back from an image that is not healthy, after its reboot',
    {
      from: () => layered,
      target: () => toImage('rendered-4'),
      content: 'one\n',
      boots: 2,
      restarts: false,
      killedIn: 2,
      isThere: isBack,
    },
  ],
  [
    'the way back into standard mode',
    {
      from: () => standard,
      target: () => toImage('rendered-4'),
      content: 'three\n',
      boots: 2,
      restarts: false,
      killedIn: 1,
      isThere: isBack,
    },
  ],
];

/** A target of standard mode is on the disk in all its parts. */
async function expectWritten(root: string, { configVersion, configImage }: Target): Promise<void> {
  const config = rendered.find(({ metadata }) => metadata.name === configVersion.desired);
  if (configImage !== undefined || config === undefined) return;
  expect(await verifyConfig(root, nodeConfigOf(config))).toEqual([]);
  const left = await readdir(path.join(root, 'var/lib/shale'));
  expect(left.filter((name) => name.startsWith('write'))).toEqual([]);
}

describe.skipIf(noDirectoryNodes !== undefined)(
  'a daemon that is killed at any point of',
  { timeout: STRIDE === 1 ? 1_800_000 : 240_000 },
  () => {
    test.each(scenarios)('%s ends where it was going', async (name, scenario) => {
      const points: number[] = [];
      for (let changes = 0, killed = true; killed; changes += STRIDE) {
        const dir = path.join(base, `${name.replaceAll(/[ ,]+/g, '-')}-${changes}`);
        await copyNode(scenario.from(), dir);
        const layout = directoryNodeLayout(dir);
        const before = await readDirectoryMachine(layout);
        const services = (await readServiceRecords(layout)).length;
        const death = { boot: scenario.killedIn ?? 0, changes };
        killed = await reach(dir, scenario.target(), death, scenario.isThere);
        const after = await readDirectoryMachine(layout);
        const done = (await readServiceRecords(layout))
          .slice(services)
          .filter(({ action }) => action === 'restart');
        const where = `killed before change ${changes}`;
        expect(await readFile(path.join(layout.root, CHRONY), 'utf8'), where).toBe(scenario.content);
        await expectWritten(layout.root, scenario.target());
        expect(after.bootCount - before.bootCount, where).toBe(scenario.boots);
        expect(done.length > 0, where).toBe(scenario.restarts);
        await removeNode(dir);
        points.push(changes);
      }
      expect(points.length).toBeGreaterThan(1);
      if (process.env['SHALE_EVERY_KILL_POINT'] === '1')
        process.stderr.write(`${name}: ${points.length - 1} kill points\n`);
    });
  },
);
