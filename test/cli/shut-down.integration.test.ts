/** SIGTERM to a command whose API server does not answer: it ends at once and in order. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { patience } from '../fixtures/patience.ts';
import { root } from './shale-process.ts';

test.each([
  ['operator', []],
  ['machine-os-builder', []],
  ['daemon', ['--node-name', 'worker-0']],
  ['page', ['--port', String(await freePort())]],
])('SIGTERM ends %s in order while its API server does not answer', async (command, flags) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-shut-down-'));
  onTestFinished(async () => {
    server.close();
    await rm(dir, { recursive: true });
  });
  const { port } = z.object({ port: z.number() }).parse(server.address());
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: `https://127.0.0.1:${port}` } }],
      users: [{ name: 'x', user: { token: 'x' } }],
    }),
  );
  await writeFile(path.join(dir, 'index.html'), '<title>the page</title>');
  const connected = once(server, 'connection');
  const args = [command, '--kubeconfig', kubeconfig, ...flags];
  const running = execa(path.join(root, 'bin/shale'), args, {
    cwd: dir,
    env: { SHALE_PAGE_DIR: dir },
    reject: false,
    timeout: patience(30_000),
  });
  await connected;
  running.kill('SIGTERM');
  const { exitCode, stderr } = await running;
  expect(stderr).not.toContain('    at ');
  expect(exitCode).toBe(0);
});
