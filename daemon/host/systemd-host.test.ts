import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { NEXT_ROOT_NOTE } from '../os/soft-reboot/userspace-boot.ts';
import { bootedDirectory, HOST_INIT, hostNamespaces, systemdHost } from './systemd-host.ts';

const signal = deadline(30_000);

/** @param shown what systemd says of its userspace; an error where it can't be asked yet. */
async function hostWith(...shown: readonly (string | Error)[]) {
  const root = await mkdtemp(path.join(tmpdir(), 'host-'));
  onTestFinished(() => rm(root, { recursive: true }));
  const commands: (readonly string[])[] = [];
  let asked = 0;
  const run: RunOsCommand = async (command) => {
    if (command[1] !== 'show') {
      commands.push(command);
      return '';
    }
    const answer = shown[Math.min(asked, shown.length - 1)] ?? '';
    asked += 1;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { root, host: systemdHost({ root, init: HOST_INIT, run }), commands, timesAsked: () => asked };
}
const shown = (softReboots?: number) =>
  `${softReboots === undefined ? '' : `SoftRebootsCount=${softReboots}\n`}UserspaceTimestampMonotonic=1000000\n`;
const kernel = async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();

describe('what a boot is', () => {
  test.each([
    ['the kernel’s, where systemd does not count', undefined, ''],
    ['the kernel’s, before any soft reboot', 0, ''],
    ['one of the userspace after soft reboots', 2, '+2'],
  ])('is %s', async (_name, count, suffix) => {
    const { host, timesAsked } = await hostWith(shown(count));
    expect(await host.bootID()).toBe(`${await kernel()}${suffix}`);
    await host.bootID();
    expect(timesAsked()).toBe(1);
    expect((await host.softBootSince()) !== undefined).toBe(suffix !== '');
  });

  test('has the id in the host’s own /proc, which a container may have another one in', async () => {
    const { host, root } = await hostWith(shown(0));
    const file = path.join(root, 'proc/sys/kernel/random/boot_id');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, 'of-the-container\n');
    expect(await host.bootID()).toBe('of-the-container');
  });

  test('is asked for again where systemd could not be asked', async () => {
    const { host, timesAsked } = await hostWith(new Error('the bus is away'), shown(0));
    await expect(host.bootID()).rejects.toThrow('the bus is away');
    expect(await host.bootID()).toBe(await kernel());
    expect(timesAsked()).toBe(2);
  });
});

test.each([
  ['the kernel’s', HOST_INIT, async () => readFile('/proc/cmdline', 'utf8')],
  ['not known, where the kernel is that of another machine', HOST_INIT + 1, async () => undefined],
])('what the kernel was started with is %s', async (_name, init, expected) => {
  const host = systemdHost({ root: '/nowhere', init, run: async () => '' });
  expect(await host.kernelCommandLine()).toBe(await expected());
});

test('what the kernel was started with is in the host’s own /proc, which a container may have another line in', async () => {
  const { host, root } = await hostWith(shown(0));
  await mkdir(path.join(root, 'proc'));
  await writeFile(path.join(root, 'proc/cmdline'), 'ostree=/ostree/boot.1 audit=1\n');
  expect(await host.kernelCommandLine()).toBe('ostree=/ostree/boot.1 audit=1\n');
});

describe('a boot has settled', () => {
  test('at once, where the kernel was started with it', async () => {
    const { host, root } = await hostWith(shown(0));
    await mkdir(path.join(root, path.dirname(NEXT_ROOT_NOTE)), { recursive: true });
    await writeFile(path.join(root, NEXT_ROOT_NOTE), '');
    await utimes(path.join(root, NEXT_ROOT_NOTE), 1, 1);
    await expect(host.bootSettled(signal)).resolves.toBeUndefined();
  });

  test('once ostree has given its note of a soft reboot to the new root', async () => {
    const { host, root } = await hostWith(shown(1));
    const note = path.join(root, NEXT_ROOT_NOTE);
    await mkdir(path.dirname(note), { recursive: true });
    await writeFile(note, '');
    await utimes(note, 1, 1);
    const settled = host.bootSettled(signal);
    const first = await Promise.race([
      settled.then(() => 'settled'),
      new Promise((go) => setImmediate(() => go('waiting'))),
    ]);
    expect(first).toBe('waiting');
    await rm(note);
    await settled;
  });
});

test.each([
  ['reboot', ['env', 'SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1', 'systemctl', 'reboot']],
  ['rebootSoftly', ['systemctl', 'soft-reboot']],
] as const)(
  '%s gives its reason in one line of 200 characters, which is no option',
  async (method, expected) => {
    const { host, commands } = await hostWith(shown(0));
    await host[method](`--force\nof ${'x'.repeat(300)}`, signal);
    const [command = []] = commands;
    expect(command.slice(0, expected.length)).toEqual(expected);
    expect(command.slice(expected.length)).toEqual([
      '--no-block',
      `--message=shale: --force of ${'x'.repeat(189)}`,
    ]);
  },
);

test('a request for a reboot has a minute, and a question to systemd half of one', async () => {
  const limits: Record<string, number> = {};
  const run: RunOsCommand = async (command, { timeoutMs }) => {
    limits[command.find((word) => /show|reboot$/.test(word)) ?? ''] = timeoutMs;
    return shown(0);
  };
  const host = systemdHost({ root: '/nowhere', init: HOST_INIT, run });
  await host.reboot('x', signal);
  await host.rebootSoftly('x', signal);
  expect(limits).toEqual({ reboot: 60_000, show: 30_000, 'soft-reboot': 60_000 });
});

test('an id that can not be read is not taken for the kernel’s', async () => {
  const { host, root } = await hostWith(shown(0));
  await mkdir(path.join(root, 'proc/sys/kernel/random/boot_id'), { recursive: true });
  await expect(host.bootID()).rejects.toThrow('EISDIR');
});

test('a soft reboot that could not be told from none is not asked for', async () => {
  const { host, commands } = await hostWith(shown());
  await expect(host.rebootSoftly('x', signal)).rejects.toThrow('does not count soft reboots');
  expect(commands).toEqual([]);
});

test('commands enter the namespaces of init, and its own of process ids where that is a container', () => {
  expect(hostNamespaces(HOST_INIT)).toEqual(
    expect.arrayContaining(['nsenter', `--target=${HOST_INIT}`, '--mount']),
  );
  expect(hostNamespaces(HOST_INIT)).not.toContain('--pid');
  expect(hostNamespaces(77)).toEqual(
    expect.arrayContaining(['--target=77', '--pid', '--root', 'setpriv', 'TERM']),
  );
});

test('the booted deployment is the directory that is the running root', async () => {
  const { root } = await hostWith();
  const deploy = path.join(root, 'sysroot/ostree/deploy');
  const booted = path.join(deploy, 'stock/deploy/b.0');
  for (const place of ['other/deploy/a.0', 'stock/deploy/a.0', 'stock/deploy/b.0']) {
    await mkdir(path.join(deploy, place), { recursive: true });
  }
  expect(await bootedDirectory(path.join(root, 'sysroot'), booted)).toBe(booted);
  await expect(bootedDirectory(path.join(root, 'sysroot'), root)).rejects.toThrow('was not booted by ostree');
});
