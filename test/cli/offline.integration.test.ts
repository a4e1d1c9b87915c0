/** diff, validate and render on files alone, as processes: output and exit codes. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { inputFile } from './input-file.ts';
import { machineConfig, root, shale, shaleProcess } from './shale-process.ts';

test.each([
  ['help of a checkout', ['--help']],
  ['help of a command', ['help', 'plan']],
  ['plan', ['plan', '--from', 'examples', '-f', 'examples/tour/chrony-v2.yaml']],
])('a reader that is gone ends the %s quietly, as SIGPIPE does', async (_name, args) => {
  const child = spawn(path.join(root, 'bin/shale'), args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  const [stderr, [exitCode]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 141 });
});

describe('shale diff', () => {
  test('shows decoded contents, attributes and removals', async () => {
    const { stdout, exitCode } = await shale([
      'diff',
      '--from',
      'examples',
      '-f',
      'examples/tour/mixed.yaml',
      '--pool',
      'worker',
    ]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('--- /dev/null\n+++ b /etc/profile.d/idle-timeout.sh');
    expect(stdout).toContain('+# mode 0644, owner 0:0');
  });

  test('compares two MachineConfigs, of files of their own or by name', async () => {
    const [chrony, more] = ['examples/20-worker-chrony.yaml', 'examples/tour/chrony-v2.yaml'];
    const files = await shale(['diff', chrony, more]);
    expect(files.exitCode).toBe(1);
    expect(files.stdout).toMatch(/^\+server ntp3/m);
    const names = await shale(['diff', '20-worker-chrony', '80-worker-motd', '-f', 'examples']);
    expect(names.exitCode).toBe(1);
    expect(names.stdout).toContain('+++ b /etc/motd.d/50-configured-by.motd');
  });

  test('says that a password is another one, and never its hash', async () => {
    const users = (hash: string) => ({ passwd: { users: [{ name: 'core', passwordHash: hash }] } });
    const from = await inputFile('old.yaml', machineConfig('p', users('$6$a$OLDHASH')));
    const to = await inputFile('new.yaml', machineConfig('p', users('$6$a$NEWHASH')));
    const { stdout } = await shale(['diff', '--from', from, '-f', to]);
    expect(stdout).toContain('-# a password hash\n+# another password hash');
    expect(stdout).not.toContain('HASH');
  });

  test('names SSH keys by their fingerprints', async () => {
    const key = Buffer.from('\0\0\0\x0bssh-ed25519 and thirty-two bytes of key').toString('base64');
    const line = `no-pty ssh-ed25519 ${key} alice@example.org`;
    const users = { passwd: { users: [{ name: 'core', sshAuthorizedKeys: [line] }] } };
    const { stdout } = await shale(['diff', '--from', 'examples', '-f', '-'], {
      input: machineConfig('99-alice', users),
    });
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64');
    expect(stdout).toContain(`+no-pty ssh-ed25519 SHA256:${digest.replace('=', '')} alice@example.org`);
    expect(stdout).not.toContain(key);
  });
});

describe('bad input is no answer:', () => {
  test.each([
    ['broken YAML', 'kind: [a', ''],
    ['no object', '- 1', 'without apiVersion, kind or metadata.name'],
    [
      'a MachineConfig without spec',
      '{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: a}}',
      'MachineConfig a: spec: is missing',
    ],
    [
      'a pool whose selector is a text',
      '{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: a}, spec: {machineConfigSelector: all}}',
      'MachineConfigPool a: spec.machineConfigSelector: ',
    ],
  ])('%s', async (_, input, message) => {
    for (const command of ['plan', 'diff']) {
      const { exitCode, stderr } = await shale([command, '--from', 'examples', '-f', '-'], { input });
      expect(exitCode).toBe(2);
      expect(stderr).toContain(message);
      expect(stderr).not.toContain('    at ');
    }
  });

  test('files without any pool', async () => {
    const objects = await inputFile('no-pool.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n');
    for (const command of ['plan', 'diff']) {
      const { exitCode, stderr } = await shale([command, '--from', objects, '-f', objects]);
      expect(exitCode).toBe(2);
      expect(stderr).toContain('no pool found');
    }
  });

  test('files without any object', async () => {
    const nothing = await inputFile('nothing.yaml', '');
    for (const args of [
      ['plan', '--from', nothing, '-f', nothing],
      ['validate', '-f', nothing],
    ]) {
      const { exitCode, stderr } = await shale(args);
      expect(exitCode).toBe(2);
      expect(stderr).toContain('nothing.yaml: no objects found');
    }
  });

  test('a null where there is nothing is no value', async () => {
    const input = machineConfig('nulls', {}, { kernelArguments: null, extensions: null, fips: null });
    expect(await shale(['validate', '-f', '-'], { input })).toMatchObject({ exitCode: 0 });
  });
});

test('a path that is a file and holds another one is refused by every command, with both MachineConfigs', async () => {
  const files = (path: string) => ({ storage: { files: [{ path, contents: { source: 'data:,a' } }] } });
  const nested = machineConfig('50-nested', files('/home/core/test'));
  const nested2 = machineConfig('51-nested2', files('/home/core/test/test'));
  const change = await inputFile('nested.yaml', `${nested}\n---\n${nested2}`);
  const image = 'registry.invalid/os/worker:1';
  for (const command of [
    ['validate'],
    ['plan', '--from', 'examples'],
    ['render', '--pool', 'worker'],
    ['build', '--pool', 'worker', '--base', image, '--push', image],
  ]) {
    const { exitCode, stdout, stderr } = await shale([...command, '-f', change]);
    expect([command[0], exitCode]).toEqual([command[0], 1]);
    expect(`${stdout}${stderr}`).toMatch(/MachineConfig 51-nested2: .*MachineConfig 50-nested/);
  }
});

describe('shale validate', () => {
  test('refuses what the image of a layered pool can not carry', async () => {
    const whiteout = machineConfig('50-ssh', {
      storage: { files: [{ path: '/etc/.wh.ssh/x', contents: { source: 'data:,' } }] },
    });
    expect(await shale(['validate', '-f', '-'], { input: whiteout })).toMatchObject({ exitCode: 0 });
    const layered = `${whiteout}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineOSConfig
metadata: {name: worker}
spec:
  machineConfigPool: {name: worker}
  imageBuilder: {imageBuilderType: Job}
  renderedImagePushSpec: registry.example.com/os/worker:1
  renderedImagePushSecret: {name: push}
`;
    const refused = await shale(['validate', '-f', '-'], { input: layered });
    expect(refused.stdout).toMatch(
      /^pool worker: no image can be built: \/etc\/\.wh\.ssh\/x: .* \(MachineConfig 50-ssh\)$/m,
    );
    expect(refused).toMatchObject({ exitCode: 1, stderr: 'shale: 1 problem found' });
  });

  test('warns of what not every host can take without layering, as plan does', async () => {
    const input = machineConfig('usbguard', {}, { extensions: ['usbguard'] });
    const warning =
      'extensions usbguard: without layering on hosts with rpm-ostree alone, not where ostree or bootc is alone';
    const table = await shale(['validate', '-f', '-'], { input });
    expect(table).toMatchObject({
      exitCode: 0,
      stdout: `1 MachineConfig is valid\nwarning: pool worker: ${warning}`,
    });
    const { stdout } = await shale(['validate', '-f', '-', '-o', 'json'], { input });
    expect(JSON.parse(stdout)).toEqual({ valid: true, problems: [], warnings: [`pool worker: ${warning}`] });
    const plan = await shale(['plan', '--from', 'examples', '-f', '-'], { input });
    expect(plan.stdout).toContain(`  warning: ${warning}`);
  });

  test('warns of what has no effect, and fails for it with --strict, like render and plan', async () => {
    const typo = machineConfig('typo', { storage: { filez: [] } });
    const foreign =
      'apiVersion: machineconfiguration.openshift.io/v1\nkind: ControllerConfig\nmetadata: {name: pods}\nspec: {}\n';
    const input = `${typo}\n---\n${foreign}`;
    const warnings = [
      'ControllerConfig pods: has no effect, because Shale does not support machineconfiguration.openshift.io/v1 ControllerConfig',
      'MachineConfig typo: $.storage.filez: is not a field of the spec and has no effect; expected no such key',
    ];
    const lines = warnings.map((warning) => `warning: ${warning}`).join('\n');
    const validate = await shale(['validate', '-f', '-'], { input });
    expect(validate).toMatchObject({ exitCode: 0, stdout: `1 MachineConfig is valid\n${lines}` });
    const json = await shale(['validate', '-f', '-', '-o', 'json', '--strict'], { input });
    expect(JSON.parse(json.stdout)).toEqual({ valid: true, problems: [], warnings });
    expect(json).toMatchObject({ exitCode: 1, stderr: 'shale: --strict: 2 warnings' });
    for (const command of [
      ['render', '--pool', 'worker', '-f', '-', '-o', 'name'],
      ['plan', '--from', 'examples', '-f', '-'],
    ]) {
      expect(await shale(command, { input })).toMatchObject({ exitCode: 0, stderr: lines });
      const strict = await shale([...command, '--strict'], { input });
      expect(strict).toMatchObject({ exitCode: 1, stderr: `${lines}\nshale: --strict: 2 warnings` });
    }
  });

  test('holds what is unfolded to the limits it is given', async () => {
    const big = gzipSync('a'.repeat(1.5 * 1024 * 1024)).toString('base64');
    const contents = { source: `data:;base64,${big}`, compression: 'gzip' };
    const input = machineConfig('big', { storage: { files: [{ path: '/etc/big', contents }] } });
    expect((await shale(['validate', '-f', '-'], { input })).exitCode).toBe(0);
    const limited = await shale(['validate', '-f', '-', '--max-file-mib', '1'], { input });
    expect(limited.exitCode).toBe(1);
    expect(limited.stdout).toContain('is too large; expected at most 1048576 bytes');
  });

  test('reports a pool whose rendered config the API server could not store', async () => {
    const contents = { source: `data:,${'a'.repeat(1.5 * 1024 * 1024)}` };
    const input = machineConfig('big', { storage: { files: [{ path: '/etc/big', contents }] } });
    const { exitCode, stdout } = await shale(['validate', '-f', '-'], { input });
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringMatching(/^pool worker: .* more than the API server/),
    ]);
  });

  test('judges every document of its files, and names each by its file and its number', async () => {
    const configs = [
      machineConfig('50-a', { storage: { files: [{ path: 'etc/a' }] } }),
      machineConfig('60-b', {}),
    ];
    const typo = machineConfig('70-c', {}).replace('"MachineConfig"', '"MachinConfig"');
    const old = machineConfig('80-d', {}).replace('openshift.io/v1', 'openshift.io/v2');
    const first = await inputFile('first.yaml', [...configs, typo].join('\n---\n'));
    // A file may have any name; an API server takes none with a colon.
    const colon = machineConfig('90: e', {});
    const second = await inputFile('second.yaml', [old, colon].join('\n---\n'));
    const judged = await shale(['validate', '-f', first, second]);
    expect(judged).toMatchObject({ exitCode: 1, stderr: 'shale: 4 problems found' });
    const CONFIG = 'machineconfiguration.openshift.io/v1';
    expect(judged.stdout.split('\n')).toEqual([
      `${first}: document 3: MachinConfig 70-c: kind: is unknown in ${CONFIG}; expected MachineConfig of ${CONFIG}`,
      `${second}: document 1: MachineConfig 80-d: kind: is unknown in machineconfiguration.openshift.io/v2; expected MachineConfig of ${CONFIG}`,
      expect.stringContaining(
        `${second}: document 2: MachineConfig 90: e: metadata.name: is "90: e"; expected `,
      ),
      expect.stringContaining(`${first}: document 1: MachineConfig 50-a: $.storage.files[0].path: `),
    ]);
    const broken = await inputFile('broken.yaml', `a: [1\n---\n${configs[0]}\n---\nkind: Pod\n`);
    const unread = await shale(['validate', '-f', broken, '-o', 'json']);
    expect(unread).toMatchObject({ exitCode: 2, stderr: 'shale: 3 problems found' });
    expect(JSON.parse(unread.stdout).problems).toEqual([
      expect.stringContaining(`${broken}: document 1: Flow sequence`),
      `${broken}: document 3: without apiVersion, kind or metadata.name`,
      expect.stringContaining(`${broken}: document 2: MachineConfig 50-a: `),
    ]);
  });

  test('the examples are valid', async () => {
    expect(await shale(['validate', '-f', 'examples'])).toMatchObject({ exitCode: 0 });
  });

  test('every problem of a file is reported at once, and by the exit code', async () => {
    const bad = machineConfig('bad', {
      storage: {
        files: [{ path: 'etc/relative' }, { path: '/etc/a', contents: { source: 'data:,%zz' } }],
      },
    });
    const { stdout, exitCode } = await shale(['validate', '-f', '-'], { input: bad });
    expect(exitCode).toBe(1);
    expect(stdout).toContain('MachineConfig bad: $.storage.files[0].path');
    expect(stdout).toContain('$.storage.files[1].contents');
  });
});

test('shale render prints the same rendered config whatever the order of the files', async () => {
  const one = await shale(['render', '--pool', 'worker', '-f', 'examples', '-o', 'name']);
  const files = ['examples/60-worker-unit.yaml', 'examples'];
  const other = await shale(['render', '--pool', 'worker', '-f', ...files, '-o', 'name']);
  expect(one.stdout).toMatch(/^rendered-worker-[0-9a-f]{32}$/);
  expect(other.stdout).toBe(one.stdout);
});

test.each([
  [['plan', '--prune'], 2],
  [['plan', '--from', 'examples'], 2],
  [['diff', '--from', 'examples'], 2],
  [['plan', '--from', 'examples', '-f', 'no-such-file'], 2],
  [['diff', '--from', 'examples', '-f', 'examples', '--pool', 'nobody'], 2],
  [['diff', '20-worker-chrony', '-f', 'examples'], 2],
  [['policies', '--defaults'], 0],
  [['no-such-command'], 2],
  [['--help'], 0],
  [['help', 'plan'], 0],
  [['help', 'plna'], 2],
  [['--kubeconfig', 'no-such-file', 'status'], 69],
  [['--context', 'x', 'policies', '--defaults'], 0],
  [['render', '--pool', 'nobody', '-f', 'examples'], 2],
])('shale %j ends with %i', async (args, code) => {
  expect((await shaleProcess(args)).exitCode).toBe(code);
});
