import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registryCertificates } from './registry-source.ts';

describe('registryCertificates', () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-certs-'));
    for (const [name, text] of [
      ['etc/containers/certs.d/registry.test:5000/b.crt', 'B'],
      ['etc/containers/certs.d/registry.test:5000/a.crt', 'A'],
      ['etc/containers/certs.d/registry.test:5000/client.key', 'KEY'],
      ['etc/docker/certs.d/registry.test:5000/ca.crt', 'C'],
    ] as const) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
  });
  afterAll(() => rm(root, { recursive: true }));

  it('are every CA of both directories, and no key', async () => {
    expect(await registryCertificates(root, 'registry.test:5000')).toEqual(['A', 'B', 'C']);
    expect(await registryCertificates(root, 'registry.test')).toEqual([]);
  });

  it.each(['..', 'a/../../b', ''])('refuses %j', async (registry) => {
    await expect(registryCertificates(root, registry)).rejects.toThrow('expected a registry');
  });
});
