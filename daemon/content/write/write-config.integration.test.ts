/** The executor on a real tree, as root: owners, labels, links, and what comes back when it is undone. */
import { existsSync } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { emptyNodeConfig as empty, type NodeConfig } from '../../../machineconfig/node-config.ts';
import { configOf, fileOf } from '../../../test/fixtures/configs.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { verifyConfig, writeConfig } from '../../../test/fixtures/standard-content.ts';
import { createTree, first, second, snapshot } from '../../../test/fixtures/written-tree.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { untouchedManagedPaths } from '../live/managed-etc.ts';
import { readPasswordFields } from '../passwords.ts';
import { finishOrUndoWrite, type WriteTarget } from './write-content.ts';

const signal = deadline(600_000);

let target: WriteTarget;
const at = (name: string) => path.join(target.root, name);
const text = (name: string) => readFile(at(name), 'utf8');
const write = (from: NodeConfig, to: NodeConfig, force = false) =>
  writeConfig(target, { from, to, force }, { signal });

/** @returns the steps that a write takes, on a tree of its own. */
async function stepsOf(prepare: (tree: WriteTarget) => Promise<unknown>, from: NodeConfig, to: NodeConfig) {
  const tree = await createTree();
  const steps: string[] = [];
  await prepare(tree);
  await writeConfig(tree, { from, to }, { signal, beforeStep: (step) => void steps.push(step) });
  await rm(tree.root, { recursive: true });
  return steps;
}

beforeEach(async () => {
  target = await createTree();
});
afterEach(() => rm(target.root, { recursive: true }));

describe('writeConfig', () => {
  it('has what it wrote labelled, once, and takes all of it back when that fails', async () => {
    const labelled: (readonly string[])[] = [];
    target = { ...target, relabel: async (_root, names) => void labelled.push(names) };
    const { written } = await write(empty, first);
    expect(labelled).toHaveLength(1);
    expect(labelled[0]).toEqual(expect.arrayContaining(written.filter((name) => name !== '/etc/shadow')));

    const before = await snapshot(target);
    target = { ...target, relabel: () => Promise.reject(new Error('no policy')) };
    await expect(write(first, second)).rejects.toThrow('no policy');
    expect(await snapshot(target)).toEqual(before);
  });

  it('has what it restores labelled again, for that is a copy', async () => {
    await write(empty, first);
    const labelled: string[] = [];
    target = {
      ...target,
      relabel: async (root, names) => void labelled.push(...names.map((name) => root + name)),
    };
    const replaced = (
      await stepsOf((tree) => writeConfig(tree, { from: empty, to: first }, { signal }), first, second)
    )
      .filter((step) => step.startsWith('file '))
      .map((step) => step.slice('file '.length));
    const beforeStep = (step: string) => {
      if (step === 'label') throw new Error('killed');
    };
    const before = await snapshot(target);
    const there = replaced.filter((name) => existsSync(at(name)));
    await expect(writeConfig(target, { from: first, to: second }, { signal, beforeStep })).rejects.toThrow(
      'killed',
    );
    expect(await snapshot(target)).toEqual(before);
    expect(there.length).toBeGreaterThan(0);
    expect(labelled).toEqual(expect.arrayContaining(there.map((name) => target.root + name)));
  });

  it('writes everything that a config wants', async () => {
    await write(empty, first);
    expect(await verifyConfig(target.root, first)).toEqual([]);
    expect(await text('var/home/core/.ssh/authorized_keys.d/ignition')).toBe('ssh-ed25519 A\n');
    const ssh = await lstat(at('var/home/core/.ssh'));
    expect([ssh.uid, ssh.gid, ssh.mode & 0o7777]).toEqual([1000, 1000, 0o700]);
    const wants = at('etc/systemd/system/multi-user.target.wants');
    expect(await readdir(wants)).toEqual(['own.service']);
  });

  it('writes nothing the second time', async () => {
    await write(empty, first);
    const written = async () => {
      const { ino, mtimeNs, ctimeNs } = await lstat(at('etc/app/own.conf'), { bigint: true });
      return { ino, mtimeNs, ctimeNs };
    };
    const before = await written();
    expect(await write(first, first)).toEqual({ written: [], removed: [] });
    expect(await write(empty, first)).toEqual({ written: [], removed: [] });
    expect(await written()).toEqual(before);
  });

  it('goes from config to config and back to what was there at first', async () => {
    const before = await snapshot(target);
    await write(empty, first);
    await write(first, second);
    expect(await verifyConfig(target.root, second)).toEqual([]);
    expect([await text('etc/admin.conf'), await text('etc/stock.conf')]).toEqual(['admin', 'stock']);
    await write(second, empty);
    expect(await snapshot(target)).toEqual(before);
  });

  it('brings back the image’s version of a path, be it newer than what was overwritten', async () => {
    await write(empty, first);
    await writeFile(at('usr/etc/stock.conf'), 'newer');
    await write(first, empty);
    expect(await text('etc/stock.conf')).toBe('newer');
  });

  it('knows what it wrote under /etc from an admin’s edits', async () => {
    await write(empty, first);
    const managed = await readManagedPaths(target.root);
    expect([...(await untouchedManagedPaths(target.root, managed)).keys()]).toEqual([...managed.keys()]);
    expect(managed.has('/etc/app/own.conf')).toBe(true);
    await write(first, empty);
    expect(await readManagedPaths(target.root)).toEqual(new Map());
  });

  it('refuses, before anything is written, what somebody else changed, unless forced', async () => {
    await write(empty, first);
    await chmod(at('etc/app/own.conf'), 0o777);
    const before = await snapshot(target);
    await expect(write(first, second)).rejects.toThrow(
      '/etc/app/own.conf: has mode 0777, but should have 0644',
    );
    expect(await snapshot(target)).toEqual(before);
    await write(first, second, true);
    expect(await verifyConfig(target.root, second)).toEqual([]);
  });

  it('never writes outside of the root', async () => {
    const outside = await mkdtemp(path.join(tmpdir(), 'shale-outside-'));
    await mkdir(at(outside), { recursive: true });
    await symlink(outside, at('etc/out'));
    await symlink(`../../../../../..${outside}`, at('etc/up'));
    await write(empty, configOf({ '/etc/out/a': 'a', '/etc/up/b': 'b' }));
    expect(await readdir(outside)).toEqual([]);
    expect((await readdir(at(outside))).sort()).toEqual(['a', 'b']);
    await rm(outside, { recursive: true });
  });

  it('writes a staged deployment, and its /var to the host’s', async () => {
    const host = await createTree();
    await rm(at('var'), { recursive: true });
    await writeConfig(
      { ...host, root: target.root, varRoot: host.root },
      { from: empty, to: first, force: true },
      { signal },
    );
    expect(await verifyConfig(target.root, first, { varRoot: host.root })).toEqual([]);
    expect(await readFile(path.join(host.root, 'var/home/core/x'), 'utf8')).toBe('x');
    expect(await readdir(host.root)).not.toContain('app');
    await rm(host.root, { recursive: true });
  });

  it('refuses a path below somebody’s file', async () => {
    const config = configOf({}, { files: new Map([['/etc/admin.conf/x', fileOf('/etc/admin.conf/x', '')]]) });
    await expect(write(empty, config)).rejects.toThrow('/etc/admin.conf is no directory');
    expect(await text('etc/admin.conf')).toBe('admin');
  });
});

describe('passwords', () => {
  const core = async () => (await readPasswordFields(target.root)).get('core');

  it('are set, changed, and gone when no config has one', async () => {
    await write(empty, first);
    expect(await core()).toBe('$6$first');
    await write(first, second);
    expect(await core()).toBe('$6$second');
    await write(second, empty);
    expect(await core()).toBe('*');
    expect((await lstat(at('etc/shadow'))).mode & 0o777).toBe(0o600);
  });

  it('that somebody else has set are refused unless forced, and taking a write back leaves them', async () => {
    await write(empty, first);
    await target.setPasswords(target.root, new Map([['core', '$6$admin']]), signal);
    await expect(write(first, second)).rejects.toThrow('/etc/shadow: user core has another password');
    expect(await core()).toBe('$6$admin');
    const beforeStep = async (step: string) => {
      if (step !== 'record what was done') return;
      await target.setPasswords(target.root, new Map([['core', '$6$meanwhile']]), signal);
      throw new Error('injected');
    };
    const failing = { from: first, to: second, force: true };
    await expect(writeConfig(target, failing, { signal, beforeStep })).rejects.toThrow('injected');
    expect(await core()).toBe('$6$meanwhile');
    expect((await readPasswordFields(target.root)).get('root')).toBe('*');
    await write(first, second, true);
    expect(await core()).toBe('$6$second');
  });
});

describe('what somebody else changes while it is written', () => {
  it.each([
    ['/etc/app/own.conf', 'file /etc/app/own.conf'],
    ['/etc/admin.conf', 'restore /etc/admin.conf'],
    ['/var/home/core/.ssh/authorized_keys.d/ignition', 'file /var/home/core/.ssh/authorized_keys.d/ignition'],
  ])('is told and stays: %s', async (name, before) => {
    await write(empty, first);
    const was = (await snapshot(target)).filter((line) => !line.startsWith(`${name} `));
    const beforeStep = async (step: string) => {
      if (step === before) await writeFile(at(name), 'by hand');
    };
    const writing = writeConfig(target, { from: first, to: second }, { signal, beforeStep });
    await expect(writing).rejects.toThrow(`changed on the node while it was written: ${name}: has sha256`);
    expect(await text(name)).toBe('by hand');
    expect((await snapshot(target)).filter((line) => !line.startsWith(`${name} `))).toEqual(was);
  });

  it('stays when the write is undone for another reason', async () => {
    await write(empty, first);
    const beforeStep = async (step: string) => {
      if (step !== 'record what was done') return;
      await writeFile(at('etc/app/own.conf'), 'by hand');
      throw new Error('injected');
    };
    const writing = writeConfig(target, { from: first, to: second }, { signal, beforeStep });
    await expect(writing).rejects.toThrow('injected');
    expect(await text('etc/app/own.conf')).toBe('by hand');
    expect(await text('etc/admin.conf')).toBe('ours');
  });
});

describe('finishOrUndoWrite', () => {
  it('does nothing when no write was under way', async () => {
    expect(await finishOrUndoWrite(target)).toBe('nothing');
  });

  it('does not undo in another tree than the one that was written to', async () => {
    const host = await createTree();
    const staged = { ...host, root: target.root, varRoot: host.root };
    const halfWay = Promise.withResolvers<void>();
    const beforeStep = (step: string) => {
      if (step !== 'record what was done') return undefined;
      halfWay.resolve();
      return new Promise<void>(() => undefined);
    };
    // As if it was killed there: it neither goes on nor undoes anything.
    void writeConfig(staged, { from: empty, to: first, force: true }, { signal, beforeStep });
    await halfWay.promise;
    await host.setPasswords(host.root, new Map([['core', '$6$first']]), signal);
    const core = async (root: string) => (await readPasswordFields(root)).get('core');
    const deployment = `${target.root}-deleted`;
    await rename(target.root, deployment);
    expect(await finishOrUndoWrite(host)).toBe('undone');
    expect(await core(host.root)).toBe('$6$first');
    expect(await readdir(path.join(host.root, 'var/home/core'))).toEqual([]);
    await rename(deployment, target.root);
    expect(await finishOrUndoWrite(host)).toBe('nothing');
    await rm(host.root, { recursive: true });
  });
});
