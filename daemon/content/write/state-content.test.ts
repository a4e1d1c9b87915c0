import { access, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { emptyNodeConfig } from '../../../machineconfig/node-config.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { noLabels } from '../../host/selinux-labels.ts';
import { readStatePaths } from '../../records/managed-paths.ts';
import type { ManagedContent } from '../entries/desired-tree.ts';
import { settleStateContent } from './state-content.ts';
import { writeContent } from './write-content.ts';

const own = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };

/** What a config has that names these files, with their contents, and directories. */
function content(
  files: Readonly<Record<string, string>>,
  directories: readonly string[] = [],
): ManagedContent {
  const entries = Object.entries(files).map(
    ([name, text]) => [name, { path: name, contents: Buffer.from(text), mode: 0o644, ...own }] as const,
  );
  return {
    delivery: 'Layered',
    config: {
      ...emptyNodeConfig,
      files: new Map(entries),
      directories: new Map(directories.map((name) => [name, { path: name, mode: 0o755, ...own }])),
    },
  };
}

async function host() {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-state-'));
  onTestFinished(() => rm(root, { recursive: true }));
  const at = (name: string) => path.join(root, name);
  const put = async (name: string, text: string) => {
    await mkdir(path.dirname(at(name)), { recursive: true });
    await writeFile(at(name), text);
  };
  const exists = (name: string) =>
    access(at(name)).then(
      () => true,
      () => false,
    );
  await mkdir(at('etc'));
  const target = {
    root,
    stateDir: path.join(root, nodePaths.state),
    setPasswords: async () => undefined,
    relabel: noLabels,
  };
  const bring = (to: ManagedContent) =>
    writeContent(target, { from: undefined, to, force: true }, { signal: deadline(10_000) });
  const settle = (now: ManagedContent) => settleStateContent(target, now, deadline(10_000));
  return { root, at, put, exists, bring, settle, target };
}

const TOOL = '/var/lib/tools/bin/tool';
const nothing = content({});

describe('what a config had outside of /etc and /usr', () => {
  test.each([TOOL, '/opt/app/conf', '/var/lib/app/seed', '/root/.rc', '/home/core/.rc', '/srv/index'])(
    '%s goes once no config has it',
    async (name) => {
      const { root, put, exists, bring, settle } = await host();
      await bring(content({ [name]: 'ours' }));
      await put(name, 'ours');
      await put(`${name}.admin`, 'mine');
      expect(await settle(nothing)).toEqual({ removed: [name], left: [] });
      expect(await exists(name)).toBe(false);
      expect(await exists(`${name}.admin`)).toBe(true);
      expect(await readStatePaths(root)).toEqual(new Map());
    },
  );

  test('stays while the config has it, whatever is there', async () => {
    const { root, at, put, bring, settle } = await host();
    const now = content({ [TOOL]: 'ours' });
    await bring(now);
    await put(TOOL, 'by hand');
    expect(await settle(now)).toEqual({ removed: [], left: [] });
    expect(await readFile(at(TOOL), 'utf8')).toBe('by hand');
    expect([...((await readStatePaths(root)) ?? [])].map(([name]) => name)).toEqual([TOOL]);
  });

  test('stays, and is told, when somebody has changed it', async () => {
    const { at, put, bring, settle } = await host();
    const both = ['/opt/app', TOOL];
    await bring(content(Object.fromEntries(both.map((name) => [name, 'ours']))));
    for (const name of both) await put(name, 'by hand');
    expect(await settle(nothing)).toEqual({
      removed: [],
      left: both.map((name) => `${name} was changed on the node`),
    });
    expect(await readFile(at(TOOL), 'utf8')).toBe('by hand');
    expect(await settle(nothing)).toEqual({ removed: [], left: [] });
  });

  test('goes as any config had it: an update that failed may have left the older or the newer', async () => {
    const { put, exists, bring, settle } = await host();
    await bring(content({ [TOOL]: 'old' }));
    await bring(content({ [TOOL]: 'new' }));
    await put(TOOL, 'new');
    expect(await settle(nothing)).toMatchObject({ removed: [TOOL] });
    expect(await exists(TOOL)).toBe(false);
  });

  test('leaves a directory with an admin’s file in it, and takes an empty one with its children', async () => {
    const { put, exists, bring, settle } = await host();
    const both = content({ '/opt/a/conf': 'ours', '/opt/b/conf': 'ours' }, ['/opt/a', '/opt/b']);
    await bring(both);
    await put('/opt/a/conf', 'ours');
    await put('/opt/b/conf', 'ours');
    await put('/opt/b/admin', 'mine');
    expect(await settle(nothing)).toEqual({ removed: ['/opt/a', '/opt/a/conf', '/opt/b/conf'], left: [] });
    expect(await exists('/opt/a')).toBe(false);
    expect(await exists('/opt/b/admin')).toBe(true);
  });

  test('is found through the links that a host has of its own', async () => {
    const { at, put, exists, bring, settle } = await host();
    await mkdir(at('var/usrlocal'), { recursive: true });
    await mkdir(at('usr'));
    await symlink('../var/usrlocal', at('usr/local'));
    await bring(content({ '/usr/local/bin/tool': 'ours' }));
    await put('/var/usrlocal/bin/tool', 'ours');
    expect(await settle(nothing)).toEqual({ removed: ['/var/usrlocal/bin/tool'], left: [] });
    expect(await exists('/var/usrlocal/bin/tool')).toBe(false);
  });

  test('makes room for what standard mode had taken over', async () => {
    const { at, put, bring, settle } = await host();
    await put(TOOL, 'mine');
    await bring(content({ [TOOL]: 'ours' }));
    await put(TOOL, 'ours');
    await settle(nothing);
    expect(await readFile(at(TOOL), 'utf8')).toBe('mine');
  });

  test('is forgotten where another write has put back the rest', async () => {
    const { root, put, exists, settle, target } = await host();
    await put(TOOL, 'same');
    const standard = (of: ManagedContent): ManagedContent => ({ ...of, delivery: 'Standard' });
    const from = standard(content({ [TOOL]: 'same' }));
    for (const write of [
      { from: undefined, to: from },
      { from, to: standard(nothing) },
    ]) {
      await writeContent(target, write, { signal: deadline(10_000) });
    }
    expect(await readStatePaths(root)).toEqual(new Map());
    expect(await settle(nothing)).toEqual({ removed: [], left: [] });
    expect(await exists(TOOL)).toBe(true);
  });

  test('that can’t be reached stays on record', async () => {
    const { at, put, bring, settle } = await host();
    await bring(content({ [TOOL]: 'ours' }));
    await rm(at('var/lib/tools'), { recursive: true });
    await symlink('tools', at('var/lib/tools'));
    const { left } = await settle(nothing);
    expect(left).toEqual([expect.stringContaining(`${TOOL} could not be removed: `)]);
    await rm(at('var/lib/tools'));
    await put(TOOL, 'ours');
    expect(await settle(nothing)).toMatchObject({ removed: [TOOL] });
  });

  test('is nothing of what an image carries itself', async () => {
    const { root, bring } = await host();
    const paths = ['/etc/app.conf', '/usr/share/app', '/usr/local/app'];
    await bring(content(Object.fromEntries(paths.map((name) => [name, 'ours']))));
    expect(await readStatePaths(root)).toBeUndefined();
  });
});
