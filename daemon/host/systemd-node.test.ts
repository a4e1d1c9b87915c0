import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { NodePorts } from './host.ts';
import { systemdNode } from './systemd-node.ts';

const signal = deadline(60_000);

let dir: string;
let root: string;
const log = () => readFile(path.join(dir, 'log'), 'utf8').then((text) => text.trim().split('\n'));

/** A program that the daemon finds by its name. */
async function program(name: string, text: string): Promise<void> {
  await writeFile(path.join(dir, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'systemd-node-'));
  root = path.join(dir, 'host');
  for (const name of ['bin', 'host/sysroot', 'host/run', 'host/usr/bin', 'host/etc']) {
    await mkdir(path.join(dir, name), { recursive: true });
  }
  vi.stubEnv('PATH', `${path.join(dir, 'bin')}:${process.env['PATH']}`);
  // Stands in for the host's namespaces, which only root enters: writes down what would be run there.
  await program(
    'nsenter',
    `echo "$@" >> ${dir}/log\ncase "$*" in *--version*) echo "Version: '2026.4'";; *status*) cat ${dir}/status;; esac`,
  );
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true });
});

type Options = Parameters<typeof systemdNode>[0];
const node = (more: Partial<Options> = {}): NodePorts =>
  systemdNode({ root, source: {} as Options['source'], pullSecretFile: '/secret', ...more });

const ENTER = 'nsenter --target=1 --mount --uts --ipc --net -- env --unset=container'.slice(
  'nsenter '.length,
);

test('commands are run in the host’s namespaces, and name files where the host has them', async () => {
  const { services, setPasswords, runOnHost } = node();
  await services.daemonReload(signal);
  await setPasswords(root, new Map([['core', '*']]), signal);
  await runOnHost(['crictl', 'info'], { timeoutMs: 10_000, signal });
  expect(await log()).toEqual([
    `${ENTER} systemctl daemon-reload`,
    // What a policy may confine has pipes, which a shell makes.
    expect.stringMatching(`^${ENTER} sh -c .* sh chpasswd --encrypted --root /$`),
    `${ENTER} crictl info`,
  ]);
});

test('a host that is a container is entered by its own init', async () => {
  await node({ init: 77 }).services.daemonReload(signal);
  const [line = ''] = await log();
  expect(line).toMatch(/^--target=77 .*--pid .* systemctl daemon-reload$/);
});

test('a daemon that runs on the host itself enters nothing', async () => {
  await program('systemctl', `echo "$0 $@" >> ${dir}/log`);
  await node({ root: '/' }).services.daemonReload(signal);
  expect(await log()).toEqual([`${dir}/bin/systemctl daemon-reload`]);
});

const BOOTED = {
  incompatible: false,
  pinned: false,
  ostree: { checksum: 'a'.repeat(64), deploySerial: 0, stateroot: 'default' },
};

test.each([
  ['ostree', { requested: undefined, tools: ['ostree'] }, false],
  ['bootc', { requested: undefined, tools: ['ostree', 'bootc'] }, false],
  ['rpm-ostree', { requested: undefined, tools: ['ostree', 'rpm-ostree'] }, true],
  // By the admin's word.
  ['ostree', { requested: 'ostree', tools: ['ostree', 'bootc', 'rpm-ostree'] }, false],
  ['rpm-ostree', { requested: 'rpm-ostree', tools: ['ostree', 'bootc', 'rpm-ostree'] }, true],
] as const)(
  'what keeps the operating system is %s where the host has %j',
  async (name, { requested, tools }, installsPackages) => {
    await writeFile(path.join(root, 'run/ostree-booted'), '');
    for (const tool of tools) await writeFile(path.join(root, 'usr/bin', tool), '');
    const host = { apiVersion: 'org.containers.bootc/v1', kind: 'BootcHost' };
    await writeFile(
      path.join(dir, 'status'),
      JSON.stringify({ ...host, status: { type: 'bootcHost', booted: BOOTED } }),
    );
    const { backend } = node(requested === undefined ? {} : { osBackend: requested });
    expect(await backend.tool(signal)).toEqual({ name, version: expect.anything(), installsPackages });
  },
);

test('a host that ostree has not booted is kept by nothing', async () => {
  await expect(node().backend.tool(signal)).rejects.toThrow('the host was not booted by ostree');
});

test('a check runs at the root of the host', async () => {
  const place = path.join(root, 'usr/lib/shale/check');
  await node().runCheck({ place }, { limitMs: 10_000, signal });
  expect(await log()).toEqual([expect.stringMatching(/--chdir=\/ .* \/usr\/lib\/shale\/check$/)]);
});
