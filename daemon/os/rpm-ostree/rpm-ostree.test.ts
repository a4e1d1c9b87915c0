import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { noPackages } from '../../../machineconfig/os-packages.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { OsCommandError, type RunOsCommand, shellWords } from '../os-command.ts';
import { rpmOstree } from './rpm-ostree.ts';

const signal = deadline(30_000);
const COMMIT = 'a'.repeat(64);

/** A host whose commands succeed, which runs an image. */
function host() {
  const commands: string[] = [];
  const booted = {
    osname: 'fcos',
    checksum: COMMIT,
    serial: 1,
    booted: true,
    'container-image-reference': `ostree-unverified-registry:${imageOf('1')}`,
    'container-image-reference-digest': imageOf('1').split('@')[1],
  };
  const run: RunOsCommand = async (command) => {
    commands.push(command.join(' '));
    return command[1] === 'status' ? JSON.stringify({ deployments: [booted] }) : '';
  };
  return { tool: rpmOstree(run), commands };
}

test.each([
  [true, true, `--lock-finalization ostree-image-signed:docker://${imageOf('1')}`],
  [true, false, `ostree-image-signed:docker://${imageOf('1')}`],
  [false, true, `--lock-finalization ostree-unverified-registry:${imageOf('1')}`],
  [false, false, `ostree-unverified-registry:${imageOf('1')}`],
])(
  'an image that must be signed (%s) and is locked (%s) is rebased to',
  async (mustBeSigned, locked, expected) => {
    const { tool, commands } = host();
    await tool.pull(imageOf('1'), { mustBeSigned, locked, signal });
    expect(commands).toEqual([`rpm-ostree rebase ${expected}`]);
  },
);

test('what is before the booted deployment is dropped at once, however many they are', async () => {
  const { tool, commands } = host();
  await tool.dropNext(3, signal);
  expect(commands).toEqual(['rpm-ostree cleanup --pending']);
});

test('what no deployment needs is deleted', async () => {
  const { tool, commands } = host();
  await tool.cleanup(signal);
  expect(commands).toEqual(['rpm-ostree cleanup --base']);
});

test('a rollback is one command', async () => {
  const { tool, commands } = host();
  await tool.rollback(signal);
  expect(commands).toEqual(['rpm-ostree rollback']);
});

/**
 * @returns what a host's own rollback runs. @param status what ostree prints. @param failing the command that fails.
 */
function ranByHost(status: string, failing = ''): string[] {
  const before = `ostree() { [ "$*" = 'admin status --sysroot=/' ] && printf '%s\\n' ${shellWords([status])}; }
tool() { echo "$*"; [ "$*" != ${shellWords([failing])} ]; }`;
  // No POSIX shell has functions of such a name.
  const script = host().tool.rollbackScript.replaceAll('rpm-ostree ', 'tool ');
  const input = `${before}\nback() {\n${script}\n}\nback || echo failed\n`;
  return execFileSync('sh', ['-u'], { input, encoding: 'utf8' }).trim().split('\n');
}

const BOOTED = `* fcos ${COMMIT}.1\n    Version: 1 (staged)`;
const STAGED = `  fcos ${'b'.repeat(64)}.0 (staged)\n${BOOTED}`;

test.each([
  ['nothing is staged', BOOTED, '', ['rollback']],
  ['another deployment is staged', STAGED, '', ['cleanup --pending', 'rollback']],
  ['what is staged stays', STAGED, 'cleanup --pending', ['cleanup --pending', 'failed']],
  ['the rollback fails', BOOTED, 'rollback', ['rollback', 'failed']],
])('a host rolls back by itself where %s', (_case, status, failing, expected) => {
  expect(ranByHost(status, failing)).toEqual(expected);
});

test('a rollback whose daemon went away is not tried again: it would swap the deployments back', async () => {
  let rollbacks = 0;
  const tool = rpmOstree(async (command) => {
    rollbacks += 1;
    throw new OsCommandError(command, 'exit code 1', { exitCode: 1, stderr: 'Bus owner changed, aborting' });
  });
  await expect(tool.rollback(signal)).rejects.toThrow('Bus owner changed');
  expect(rollbacks).toBe(1);
});

test('it locks by itself, and installs packages on the image that it has', async () => {
  const { tool, commands } = host();
  expect(tool).toMatchObject({ name: 'rpm-ostree', keepsLock: true });
  const packages = { installed: ['vim'], removed: [] };
  // The host never has them, so that the last of the transactions is reached.
  const installed = tool.deployPackages?.(imageOf('1'), {
    packages,
    former: noPackages,
    mustBeSigned: false,
    signal,
  });
  await expect(installed).rejects.toThrow('has the requested packages after 6 transactions');
  const installs = commands.filter((command) => command !== 'rpm-ostree status --json');
  expect(installs).toEqual(Array.from({ length: 6 }, () => 'rpm-ostree install --lock-finalization vim'));
});

test('a rebase and an installation have an hour, over whatever line, and everything else minutes', async () => {
  const limits: Record<string, number> = {};
  const tool = rpmOstree(async ([, verb = '', option = ''], { timeoutMs }) => {
    limits[verb === 'cleanup' ? `${verb} ${option}` : verb] = timeoutMs;
    return '{"deployments":[]}';
  });
  await tool.pull(imageOf('1'), { mustBeSigned: false, locked: true, signal });
  await tool.rollback(signal);
  await tool.cleanup(signal);
  await tool.dropNext(1, signal);
  expect(limits).toEqual({
    rebase: 3_600_000,
    rollback: 120_000,
    'cleanup --base': 600_000,
    'cleanup --pending': 600_000,
  });
  const packages = { packages: noPackages, former: noPackages, mustBeSigned: false, signal };
  await expect(tool.deployPackages?.(imageOf('1'), packages)).rejects.toThrow('after 6 transactions');
  expect(limits).toMatchObject({ status: 120_000, rebase: 3_600_000 });
});

test('its deployments are those of its status', async () => {
  const { tool, commands } = host();
  expect([...(await tool.deployments(signal))]).toEqual([
    [`${COMMIT}.1`, expect.objectContaining({ isBooted: true, isPinned: false, image: imageOf('1') })],
  ]);
  expect(commands).toEqual(['rpm-ostree status --json']);
});
