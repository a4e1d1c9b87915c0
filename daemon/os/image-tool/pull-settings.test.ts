import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { policyDemandsSignatures, sharePullSecret } from './pull-settings.ts';

describe('policyDemandsSignatures', () => {
  it.each([
    ['anything', '{"default":[{"type":"insecureAcceptAnything"}]}', false],
    ['nothing', '{"default":[{"type":"reject"}]}', true],
    ['what is signed', '{"default":[{"type":"sigstoreSigned","keyPath":"/etc/pki/key.pub"}]}', true],
    [
      'what is signed, or anything',
      '{"default":[{"type":"sigstoreSigned","keyPath":"/etc/pki/key.pub"},{"type":"insecureAcceptAnything"}]}',
      false,
    ],
    // What is said of single registries is the tools' to obey; the default decides for all others.
    [
      'anything but from one registry',
      '{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"quay.io":[{"type":"reject"}]}}}',
      false,
    ],
  ])('a host that lets %s in', (_name, text, expected) => {
    expect(policyDemandsSignatures(text)).toBe(expected);
  });

  it.each(['', '[]', '{"default":"reject"}'])('refuses %j', (text) => {
    expect(() => policyDemandsSignatures(text)).toThrow('/etc/containers/policy.json');
  });
});

const SECRET = '/var/lib/kubelet/config.json';

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

  it('gives the tools the node’s secret, also after it has changed', async () => {
    await write(SECRET, 'one');
    await sharePullSecret(root, SECRET);
    await sharePullSecret(root, SECRET);
    expect(await shared()).toBe('one');
    await write(SECRET, 'two');
    expect(await shared()).toBe('two');
  });

  it('leaves an admin’s alone', async () => {
    await write(SECRET, 'kubelet');
    await write('/etc/ostree/auth.json', 'admin');
    await sharePullSecret(root, SECRET);
    await expect(shared()).rejects.toThrow('ENOENT');
  });

  it('makes nothing where the node has none, and puts a link right that led nowhere', async () => {
    await sharePullSecret(root, SECRET);
    await expect(shared()).rejects.toThrow('ENOENT');
    await write(SECRET, 'one');
    await sharePullSecret(root, SECRET);
    await rm(path.join(root, SECRET));
    await write(SECRET, 'again');
    await sharePullSecret(root, SECRET);
    expect(await shared()).toBe('again');
  });
});
