import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { processConnection } from './connection.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-connection-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('a process reaches the cluster of its pod by its service account', async () => {
  await writeFile(path.join(directory, 'ca.crt'), '');
  await writeFile(path.join(directory, 'token'), 'a');
  const { baseUrl, authorize } = await processConnection(undefined, {
    KUBERNETES_SERVICE_HOST: 'fd00::1',
    KUBERNETES_SERVICE_PORT: '443',
    SHALE_SERVICE_ACCOUNT_DIR: directory,
  });
  expect([baseUrl.href, await authorize()]).toEqual(['https://[fd00::1]/', { authorization: 'Bearer a' }]);
});

test('outside of a pod it says what would be right', async () => {
  await expect(processConnection(undefined, {})).rejects.toMatchObject({
    name: 'StartupError',
    kind: 'unavailable',
    message: expect.stringMatching(/^not in a pod: .*; outside of a cluster use --kubeconfig$/),
  });
});

test.each([
  ['that does not exist', undefined, /^--kubeconfig: .*ENOENT.*none'$/],
  ['that is no kubeconfig', '[', /^--kubeconfig: /],
])('a kubeconfig %s is reported as the flag that names it', async (_, text, message) => {
  const file = path.join(directory, text === undefined ? 'none' : 'kubeconfig');
  if (text !== undefined) await writeFile(file, text);
  await expect(processConnection(file, {})).rejects.toMatchObject({
    name: 'StartupError',
    kind: 'unavailable',
    message: expect.stringMatching(message),
  });
});
