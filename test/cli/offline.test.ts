import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';

const root = path.join(import.meta.dirname, '../..');

/** Runs shale as a person would. */
async function shale(...args: string[]) {
  const { stdout, stderr, exitCode } = await execa(path.join(root, 'bin/shale'), args, {
    cwd: root,
    reject: false,
  });
  return { stdout, stderr, exitCode };
}

describe('shale plan', () => {
  test.each([
    ['chrony-v2.yaml', 'pool worker: Restart(chronyd.service)', 'policy for /etc/chrony.conf'],
    ['karg.yaml', 'pool worker: Reboot', 'kernelArguments takes effect at boot'],
    ['mixed.yaml', 'pool worker: Reboot', 'no policy names it'],
  ])('%s: %s', async (file, verdict, why) => {
    const { stdout, exitCode } = await shale('plan', '--from', 'examples', '-f', `examples/tour/${file}`);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(verdict);
    expect(stdout).toContain(why);
    // A custom pool inherits worker's MachineConfigs, and so its changes.
    expect(stdout).toContain('pool infra:');
  });

  test('what is applied again changes nothing', async () => {
    const { stdout } = await shale('plan', '--from', 'examples', '-f', 'examples', '-o', 'json');
    expect((JSON.parse(stdout) as { actions: unknown[] }[]).flatMap(({ actions }) => actions)).toEqual([]);
  });
});

describe('shale validate', () => {
  test('the examples are valid', async () => {
    expect(await shale('validate', '-f', 'examples')).toMatchObject({ exitCode: 0 });
  });

  test('every problem of a file is told at once, and the exit code says so', async () => {
    const bad = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: 'bad', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      spec: {
        config: {
          ignition: { version: '3.2.0' },
          storage: {
            files: [{ path: 'etc/relative' }, { path: '/etc/a', contents: { source: 'data:,%zz' } }],
          },
        },
      },
    };
    const { stdout, exitCode } = await execa(path.join(root, 'bin/shale'), ['validate', '-f', '-'], {
      input: JSON.stringify(bad),
      reject: false,
    });
    expect(exitCode).toBe(1);
    expect(stdout).toContain('MachineConfig bad: $.storage.files[0].path');
    expect(stdout).toContain('$.storage.files[1].contents');
  });
});

test('shale render prints the same rendered config whatever the order of the files', async () => {
  const one = await shale('render', '--pool', 'worker', '-f', 'examples', '-o', 'name');
  const other = await shale(
    'render',
    '--pool',
    'worker',
    '-f',
    'examples/60-worker-unit.yaml',
    'examples',
    '-o',
    'name',
  );
  expect(one.stdout).toMatch(/^rendered-worker-[0-9a-f]{32}$/);
  expect(other.stdout).toBe(one.stdout);
});

test("shale policies lists the defaults with the admin's over them", async () => {
  const { stdout } = await shale('policies', '-f', 'examples/90-disruption-policy.yaml');
  expect(stdout).toContain('/etc/chrony.conf: Restart(chronyd.service)');
  expect(stdout).toContain('/etc/containers/registries.conf: Special');
});

test.each([
  [['plan'], 2],
  [['plan', '-f', 'no-such-file'], 2],
  [['policies', '--defaults'], 0],
  [['no-such-command'], 2],
  [['--help'], 0],
  [['render', '--pool', 'nobody', '-f', 'examples'], 1],
])('shale %j ends with %i', async (args, code) => {
  expect((await shale(...args)).exitCode).toBe(code);
});
