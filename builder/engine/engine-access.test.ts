import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { engineAccess, formatEngineAccess } from './engine-access.ts';

test('a socket needs nothing else', async () => {
  const access = await engineAccess('unix:///run/podman/podman.sock');
  expect(access).toEqual({ kind: 'socket', path: '/run/podman/podman.sock' });
  expect(formatEngineAccess(access)).toBe('unix:///run/podman/podman.sock');
});

test.each([
  ['tcp://engine:1234', 1234],
  ['tcp://engine', 2376],
])('%s is reached by TLS at port %i, by the files of Docker’s clients', async (url, port) => {
  const tlsDir = await mkdtemp(path.join(tmpdir(), 'shale-access-'));
  onTestFinished(() => rm(tlsDir, { recursive: true }));
  for (const name of ['ca', 'cert', 'key']) await writeFile(path.join(tlsDir, `${name}.pem`), name);
  const access = await engineAccess(url, { tlsDir });
  const files = { ca: 'ca', cert: 'cert', key: 'key' };
  expect(access).toEqual({ kind: 'tls', host: 'engine', port, serverName: 'engine', ...files });
  expect(formatEngineAccess(access)).toBe(`tcp://engine:${port}`);
});

test.each([
  ['tcp://engine:2375', {}, 'TCP needs TLS (--engine-tls-dir)'],
  [
    'http://engine:2375',
    { tlsDir: '/nowhere' },
    'engine http://engine:2375: expected unix:///path or tcp://host:port',
  ],
  ['tcp://engine:2376', { tlsDir: '/nowhere' }, 'ENOENT'],
  ['engine', {}, 'Invalid URL'],
])('%s with %j is refused', async (url, options, why) => {
  await expect(engineAccess(url, options)).rejects.toThrow(why);
});
