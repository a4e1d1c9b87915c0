/** A deployment's tree under real mounts: the daemon's namespace can write what the host mounts read-only. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { noDirectoryNodes } from '../../../test/fixtures/test-node.ts';
import { makeWritable } from '../../host/writable-mounts.ts';
import { osCommandRunner, type RunOsCommand } from '../os-command.ts';
import { DeploymentTrees } from './deployment-trees.ts';

const VERITY = 'a'.repeat(128);
/** Where the host has what bootc would mount. */
const IMAGE = 'image';

/** A host whose mounts reach this process, and not the other way round: as those of a pod with HostToContainer. */
async function hostOfPod(): Promise<{ readonly base: string; readonly onHost: RunOsCommand }> {
  const base = await mkdtemp(path.join(tmpdir(), 'trees-'));
  const mount = (...args: string[]) => execFileSync('mount', args);
  mount('-t', 'tmpfs', 'host', base);
  onTestFinished(async () => {
    execFileSync('umount', ['--recursive', base]);
    await rm(base, { recursive: true });
  });
  mount('--make-shared', base);
  const sysroot = path.join(base, 'sysroot');
  await mkdir(path.join(sysroot, 'state/deploy', VERITY, 'etc'), { recursive: true });
  for (const name of ['etc', 'usr/bin']) await mkdir(path.join(base, IMAGE, name), { recursive: true });
  mount('--bind', sysroot, sysroot);
  mount('-o', 'remount,bind,ro', sysroot);
  const host = spawn('unshare', [
    '--mount',
    '--propagation=unchanged',
    'sh',
    '-c',
    'echo; exec sleep infinity',
  ]);
  onTestFinished(async () => {
    const ended = once(host, 'exit');
    host.kill('SIGKILL');
    await ended;
  });
  await once(host.stdout, 'data');
  mount('--make-rslave', base);
  return { base, onHost: osCommandRunner(['nsenter', `--mount=/proc/${host.pid}/ns/mnt`, '--']) };
}

describe.skipIf(noDirectoryNodes !== undefined)('the tree of a deployment that is not booted', () => {
  test('can be written to by a daemon whose mounts are not the host’s', async () => {
    const signal = deadline(30_000);
    const { base, onHost } = await hostOfPod();
    const [root, sysroot] = [path.join(base, 'root'), path.join(base, 'sysroot')];
    const writable = (place: string) => makeWritable(place, { onHost: false, signal });
    await writable(sysroot);
    const run: RunOsCommand = (command, options) =>
      command[0] === 'bootc'
        ? onHost(['mount', '--bind', path.join(base, IMAGE), command.at(-1) ?? ''], options)
        : onHost(command, options);
    const trees = new DeploymentTrees({
      root,
      sysroot,
      run,
      commandPath: (place) => place,
      makeWritable: writable,
    });
    const tree = await trees.of(VERITY, signal);
    await writeFile(path.join(tree, 'etc/hosts'), 'written\n');
    expect(await readFile(path.join(sysroot, 'state/deploy', VERITY, 'etc/hosts'), 'utf8')).toBe('written\n');
    expect(await trees.of(VERITY, signal)).toBe(tree);
    await trees.keep([], signal);
  });
});
