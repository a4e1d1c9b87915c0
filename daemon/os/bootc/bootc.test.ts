import { expect, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { bootc } from './bootc.ts';

const signal = deadline(30_000);

/** A host whose commands succeed. @param status what `bootc status` prints. */
function hostWith(status = '') {
  const commands: string[] = [];
  const run: RunOsCommand = async (command) => {
    commands.push(command.join(' '));
    return command[1] === 'status' ? status : '';
  };
  return { tool: bootc(run), commands };
}

test.each([
  [true, ' --enforce-container-sigpolicy'],
  [false, ''],
])(
  'an image is pulled from its registry; that it has to be signed (%s) is handed on',
  async (mustBeSigned, flag) => {
    const { tool, commands } = hostWith();
    await tool.pull(imageOf('1'), { mustBeSigned, locked: false, signal });
    expect(commands).toEqual([`bootc switch --quiet --transport=registry${flag} ${imageOf('1')}`]);
  },
);

test.each([1, 2])('%i deployments before the booted one are deleted one by one, by ostree', async (count) => {
  const { tool, commands } = hostWith();
  await tool.dropNext(count, signal);
  expect(commands).toEqual(Array.from({ length: count }, () => 'ostree admin undeploy --sysroot=/ 0'));
});

test('a rollback is the command that a host runs itself', async () => {
  const { tool, commands } = hostWith();
  await tool.rollback(signal);
  expect(commands).toEqual([tool.rollbackScript]);
  expect(commands).toEqual(['bootc rollback']);
});

test('it has nothing to clean up, locks nothing by itself and installs no packages', async () => {
  const { tool, commands } = hostWith();
  await tool.cleanup(signal);
  expect(commands).toEqual([]);
  expect(tool).toMatchObject({ name: 'bootc', keepsLock: false });
  expect(tool.deployPackages).toBeUndefined();
});

test('its deployments are those of its status', async () => {
  const entry = {
    image: null,
    incompatible: false,
    pinned: true,
    ostree: { checksum: 'a'.repeat(64), deploySerial: 3, stateroot: 'default' },
  };
  const status = { apiVersion: 'org.containers.bootc/v1', kind: 'BootcHost', status: { booted: entry } };
  const { tool, commands } = hostWith(JSON.stringify(status));
  expect([...(await tool.deployments(signal))]).toEqual([
    [`${'a'.repeat(64)}.3`, expect.objectContaining({ isBooted: true, isPinned: true })],
  ]);
  expect(commands).toEqual(['bootc status --format=json --format-version=1']);
});

test('a pull has an hour, over whatever line, and everything else minutes', async () => {
  const limits: Record<string, number> = {};
  const tool = bootc(async ([program, verb], { timeoutMs }) => {
    limits[`${program} ${verb}`] = timeoutMs;
    return JSON.stringify({ apiVersion: 'org.containers.bootc/v1', kind: 'BootcHost', status: {} });
  });
  await tool.pull(imageOf('1'), { mustBeSigned: false, locked: false, signal });
  await tool.rollback(signal);
  await tool.deployments(signal);
  expect(limits).toEqual({ 'bootc switch': 3_600_000, 'bootc rollback': 120_000, 'bootc status': 120_000 });
});

test('what it fails with is handed on', async () => {
  const failure = new OsCommandError(['bootc', 'switch'], 'exit code 1', { exitCode: 1, stderr: 'no route' });
  const tool = bootc(() => Promise.reject(failure));
  await expect(tool.pull(imageOf('1'), { mustBeSigned: true, locked: false, signal })).rejects.toBe(failure);
  await expect(tool.rollback(signal)).rejects.toBe(failure);
  await expect(tool.dropNext(1, signal)).rejects.toBe(failure);
});
