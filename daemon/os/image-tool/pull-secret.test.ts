import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KUBELET_AUTH_FILE, sharePullSecret } from './pull-secret.ts';

describe('sharePullSecret', () => {
  let root: string;
  const write = async (name: string, text: string) => {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  };
  const shared = () => readFile(path.join(root, 'run/ostree/auth.json'), 'utf8');

  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-secret-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  it('gives the tools the kubelet’s secret, also after it has changed', async () => {
    await write(KUBELET_AUTH_FILE, 'one');
    await sharePullSecret(root);
    await sharePullSecret(root);
    expect(await shared()).toBe('one');
    await write(KUBELET_AUTH_FILE, 'two');
    expect(await shared()).toBe('two');
  });

  it('leaves an admin’s alone', async () => {
    await write(KUBELET_AUTH_FILE, 'kubelet');
    await write('/etc/ostree/auth.json', 'admin');
    await sharePullSecret(root);
    await expect(shared()).rejects.toThrow('ENOENT');
  });

  it('makes nothing where the kubelet has none, and puts a link right that led nowhere', async () => {
    await sharePullSecret(root);
    await expect(shared()).rejects.toThrow('ENOENT');
    await write(KUBELET_AUTH_FILE, 'one');
    await sharePullSecret(root);
    await rm(path.join(root, KUBELET_AUTH_FILE));
    await write(KUBELET_AUTH_FILE, 'again');
    await sharePullSecret(root);
    expect(await shared()).toBe('again');
  });
});
