/** OpenSSL verifies the certificates strictly: Node alone would let some pass. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority } from './certificate.ts';

const authority = createAuthority('test ca', new Date(), 600_000);
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-x509-'));
  await writeFile(path.join(dir, 'ca.pem'), authority.caPem);
  const server = authority.issueServer({ dns: ['engine.test'], ipv4: ['127.0.0.1'] });
  await writeFile(path.join(dir, 'server.pem'), server.certPem);
  await writeFile(path.join(dir, 'client.pem'), authority.issueClient('builder').certPem);
});
afterAll(() => rm(dir, { recursive: true }));

const verify = (purpose: string, file: string, ...more: string[]) => {
  const options = ['-x509_strict', '-CAfile', path.join(dir, 'ca.pem'), '-purpose', purpose, ...more];
  return execa('openssl', ['verify', ...options, path.join(dir, file)], { reject: false });
};

test.each([
  ['sslserver', 'server.pem', ['-verify_hostname', 'engine.test']],
  ['sslserver', 'server.pem', ['-verify_ip', '127.0.0.1']],
  ['sslclient', 'client.pem', []],
])('OpenSSL verifies for %s strictly: %s %j', async (purpose, file, more) => {
  const { exitCode, stderr } = await verify(purpose, file, ...more);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
});

test.each([
  ['sslserver', 'client.pem', []],
  ['sslclient', 'server.pem', []],
  ['sslserver', 'server.pem', ['-verify_hostname', 'other.test']],
])('OpenSSL refuses for %s: %s %j', async (purpose, file, more) => {
  expect((await verify(purpose, file, ...more)).exitCode).not.toBe(0);
});
