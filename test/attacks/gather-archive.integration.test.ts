/** An archive for a bug report is read by people who may read none of the cluster's secrets. */
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigMaps, Deployments, Nodes, Secrets } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import type { Kind, KubernetesObject, NewObject } from '../../api/object.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import {
  condition,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from '../cli/cluster-with-pools.ts';
import { machineConfig } from '../cli/shale-process.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';

const canaries = new Map<string, string>();

/** @returns a value of its own that must not be in the archive. @param where it is a secret. */
function canary(where: string): string {
  const value = `Hunter${canaries.size}x${where.length}Canary${where.replaceAll(/\W/g, '')}`;
  canaries.set(where, value);
  return value;
}

const source = (where: string) => ({ source: `data:,${canary(where)}` });
const IGNITION = {
  ignition: {
    version: '3.4.0',
    config: { merge: [{ source: `https://u:${canary('merged config')}@h/a`, httpHeaders: header('merge') }] },
    proxy: { httpsProxy: `http://u:${canary('proxy of Ignition')}@proxy:3128` },
  },
  passwd: {
    users: [
      {
        name: 'core',
        gecos: canary('gecos'),
        passwordHash: canary('password hash'),
        sshAuthorizedKeys: [`ssh-ed25519 AAAA ${canary('comment of a key')}`],
      },
    ],
    groups: [{ name: 'g', passwordHash: canary("group's hash") }],
  },
  storage: {
    files: [
      { path: '/etc/a', contents: source('file') },
      { path: '/etc/b', append: [source('appended')] },
      {
        path: '/etc/c',
        contents: { source: `https://h/?sig=${canary('signed URL')}`, httpHeaders: header('file') },
      },
      { path: '/etc/d', contents: { source: 'data:,', verification: { hash: `sha256-${canary('hash')}` } } },
    ],
    filesystems: [
      {
        device: '/dev/a',
        format: 'xfs',
        options: [canary('option')],
        mountOptions: [canary('mount option')],
      },
    ],
    raid: [{ name: 'r', level: 'raid0', devices: ['/dev/a'], options: [canary('option of RAID')] }],
    luks: [
      {
        name: 'root',
        device: '/dev/a',
        keyFile: source('LUKS key'),
        options: [canary('option of LUKS')],
        openOptions: [canary('option of opening')],
        clevis: {
          tang: [{ url: `https://u:${canary('tang')}@h`, thumbprint: canary('thumbprint') }],
          custom: { pin: 'sss', config: JSON.stringify({ password: canary('Clevis') }) },
        },
      },
    ],
  },
  systemd: {
    units: [
      {
        name: 'a.service',
        contents: `[Service]\nEnvironment=${canary('unit')}`,
        dropins: [{ name: 'b.conf', contents: canary('drop-in') }],
      },
    ],
  },
};

function header(where: string) {
  return [{ name: 'Authorization', value: `Bearer ${canary(`header of ${where}`)}` }];
}

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  const { client } = cluster;
  const create = <T extends KubernetesObject>(kind: Kind<T>, object: object, namespace?: string) =>
    client.create(kind, object as NewObject<T>, {
      ...(namespace === undefined ? {} : { namespace }),
      signal,
    });
  const about = (where: string) =>
    `GET https://robot:${canary(where)}@registry.test/v2/ failed, password=${canary(`setting in ${where}`)}`;
  await cluster.addPool('worker', {
    conditions: [condition('Degraded', 'True', about('condition of a pool'))],
  });
  await cluster.addNode(
    'worker-0',
    'worker',
    {},
    {
      conditions: [condition('NodeDegraded', 'True', about('condition of a node'))],
    },
  );
  const config = JSON.parse(
    machineConfig('20-a', IGNITION, {
      kernelArguments: [
        'quiet',
        `ds=nocloud;s=http://h/${canary('kernel argument')}`,
        canary('bare argument'),
      ],
    }),
  ) as MachineConfig;
  await create(MachineConfigs, {
    ...config,
    metadata: {
      ...config.metadata,
      annotations: {
        'kubectl.kubernetes.io/last-applied-configuration': canary('last applied'),
        'example.com/note': canary('annotation'),
      },
    },
  });
  const argument = canary('build argument');
  await create(MachineOSConfigs, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: 'worker' },
    spec: {
      machineConfigPool: { name: 'worker' },
      imageBuilder: { imageBuilderType: 'Job' },
      renderedImagePushSecret: { name: 'push' },
      renderedImagePushSpec: 'registry.test/os:latest',
      buildArguments: [{ name: 'LICENSE', value: argument }],
      containerFile: [{ content: `FROM configs\nRUN subscribe ${canary('Containerfile')}\n` }],
    },
  });
  const data = {
    '.dockerconfigjson': Buffer.from(JSON.stringify({ auths: { r: { auth: canary('Secret') } } })).toString(
      'base64',
    ),
  };
  await create(
    Secrets,
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'push' }, type: 'Opaque', data },
    'shale-system',
  );
  await create(
    ConfigMaps,
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'on-cluster-layering' },
      data: { note: canary('unknown key') },
    },
    'shale-system',
  );
  const labels = { app: 'proxied' };
  const container = {
    name: 'a',
    image: 'i',
    args: ['--notify-url', `https://u:${canary('argument')}@h`, `--secret=${canary('option')}`],
    env: [{ name: 'HTTPS_PROXY', value: `http://u:${canary('proxy')}@proxy:3128` }],
    livenessProbe: {
      httpGet: { path: '/', port: 1, httpHeaders: [{ name: 'a', value: canary('header of a probe') }] },
    },
  };
  await create(
    Deployments,
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'proxied' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    },
    'shale-system',
  );
  const node = await client.get(Nodes, 'worker-0', { signal });
  const events = createEventRecorder(client, 'test', log);
  events.warning(node, 'BuildError', about('event'));
  events.warning(node, 'BuildError', `the command printed ${argument}`);
});
afterAll(() => cluster.stop());

test('the archive has no secret in any form, and what a report needs', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const file = path.join(cluster.dir, 'canaries.tar.gz');
  const { exitCode, stderr } = await cluster.shale('gather', '-o', file);
  expect(exitCode, stderr).toBe(0);
  const all = (await execa('tar', ['-xzOf', file])).stdout;
  const found = [...canaries].filter(([, value]) =>
    [
      value,
      ...['base64', 'base64url', 'hex'].map((form) => Buffer.from(value).toString(form as BufferEncoding)),
    ].some((form) => all.includes(form)),
  );
  expect(found.map(([where]) => where)).toEqual([]);
  expect(canaries.size).toBeGreaterThan(35);
  for (const useful of [
    '/etc/a',
    'a.service',
    'b.conf',
    'quiet',
    'ds=(omitted',
    'https://…@registry.test/v2/ failed',
    'registry.test/os:latest',
    'LICENSE',
    'HTTPS_PROXY',
    'BuildError Node/worker-0',
    'type: NodeDegraded',
  ])
    expect(all).toContain(useful);
});
