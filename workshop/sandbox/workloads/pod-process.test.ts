import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Pod } from '../../../api/kubernetes.ts';
import { isShaleImage, preparePod } from './pod-process.ts';

const daemonPod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'shale-daemon-x', namespace: 'shale-system', uid: 'uid-1' },
  spec: {
    nodeName: 'worker-0',
    serviceAccountName: 'shale-daemon',
    containers: [
      {
        name: 'daemon',
        image: 'shale:latest',
        args: ['daemon', '--host-root', '/host'],
        env: [
          { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'PLAIN', value: 'x' },
        ],
      },
    ],
  },
};

async function environment() {
  const podsDirectory = await mkdtemp(path.join(tmpdir(), 'pods-'));
  onTestFinished(() => rm(podsDirectory, { recursive: true }));
  return {
    apiServer: { host: '127.0.0.1', port: 6443, caPem: 'ca' },
    createToken: async ({ namespace, name, node }: { namespace: string; name: string; node: string }) =>
      `token of ${namespace}/${name} on ${node}`,
    daemonHost: async (node: string) => ({
      program: 'sandbox-daemon.ts',
      args: ['--host-root', `/nodes/${node}`],
    }),
    podsDirectory,
  };
}

test('a pod gets its service account, its environment, and the node in place of the mounted host', async () => {
  const given = await environment();
  const { program, args, env } = await preparePod(daemonPod, given);
  expect(program).toBe('sandbox-daemon.ts');
  expect(args).toEqual(['daemon', '--host-root', '/nodes/worker-0']);
  expect(env).toMatchObject({ NODE_NAME: 'worker-0', PLAIN: 'x', KUBERNETES_SERVICE_PORT: '6443' });
  const token = await readFile(path.join(given.podsDirectory, 'uid-1', 'token'), 'utf8');
  expect(token).toBe('token of shale-system/shale-daemon on worker-0');
});

test('what an optional Secret sets comes from the environment of the sandbox, if at all', async () => {
  const pod = structuredClone(daemonPod) as Pod & { spec: { containers: [{ env: unknown[] }] } };
  const secretKeyRef = { name: 'receiver', key: 'url', optional: true };
  pod.spec.containers[0].env.push({ name: 'RECEIVER', valueFrom: { secretKeyRef } });
  expect((await preparePod(pod, await environment())).env).not.toHaveProperty('RECEIVER');
  vi.stubEnv('RECEIVER', 'http://receiver');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await preparePod(pod, await environment())).env).toMatchObject({ RECEIVER: 'http://receiver' });
});

test('a field that the sandbox can not resolve is an error', async () => {
  const pod = structuredClone(daemonPod) as Pod & { spec: { containers: [{ env: unknown[] }] } };
  pod.spec.containers[0].env.push({ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } });
  await expect(preparePod(pod, await environment())).rejects.toThrow(/IP/);
});

test.each([
  ['shale', true],
  ['shale:latest', true],
  ['registry.example.com:5000/os/shale:1.0', true],
  ['example.com/marshale:1', false],
  ['nginx', false],
  [undefined, false],
])('%s is our own: %s', (image, ours) => {
  expect(isShaleImage(image)).toBe(ours);
});
