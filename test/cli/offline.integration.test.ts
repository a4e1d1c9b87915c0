import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { machineConfig, root, shale, shaleProcess } from './shale-process.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-cli-'));
});
afterAll(() => rm(dir, { recursive: true }));

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

/** @returns the name of a file with that content. */
async function file(name: string, content: string): Promise<string> {
  const where = path.join(dir, name);
  await writeFile(where, content);
  return where;
}

describe('shale plan', () => {
  test.each([
    ['chrony-v2.yaml', 'pool worker: Restart(chronyd.service)', 'policy for /etc/chrony.conf'],
    ['karg.yaml', 'pool worker: Reboot', 'kernelArguments takes effect at boot'],
    ['mixed.yaml', 'pool worker: Reboot', 'no policy covers it'],
  ])('%s: %s', async (file, verdict, why) => {
    const { stdout, exitCode } = await shale(['plan', '--from', 'examples', '-f', `examples/tour/${file}`]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(verdict);
    expect(stdout).toContain(why);
    // A custom pool inherits worker's MachineConfigs, and so its changes.
    expect(stdout).toContain('pool infra:');
  });

  test('shows no more of a long change than fits, unless it is asked to', async () => {
    const contents = { source: `data:,${'line%0A'.repeat(100)}` };
    const input = machineConfig('long', { storage: { files: [{ path: '/etc/long', contents }] } });
    const change = ['plan', '--from', 'examples', '-f', '-'];
    const { stdout } = await shale(change, { input });
    expect(stdout).toMatch(/^ {2}… 64 more lines; use --diff to show all$/m);
    expect(stdout.match(/^ {2}\+line$/gm)).toHaveLength(36);
    const all = await shale([...change, '--diff'], { input });
    expect(all.stdout.match(/^ {2}\+line$/gm)).toHaveLength(100);
  });

  test('shows what changes in decoded contents, in Markdown too', async () => {
    const change = ['plan', '--from', 'examples', '-f', 'examples/tour/chrony-v2.yaml'];
    const table = await shale(change);
    expect(table.stdout).toContain('  +server ntp3.example.org iburst\n');
    expect(table.stdout).toMatch(/^pool worker: .*\n.*\n {2}the diff is the same as for pool infra$/m);
    expect((await shale([...change, '--no-diff'])).stdout).not.toContain('ntp3.example.org');
    expect((await shale([...change, '--no-diff', '-o', 'markdown'])).stdout).not.toContain(
      'ntp3.example.org',
    );
    const { stdout } = await shale([...change, '-o', 'markdown']);
    expect(stdout).toMatch(
      /<details>.*\n\n```diff\n[\s\S]*\n\+server ntp3.example.org iburst\n[\s\S]*\n```\n\n<\/details>/,
    );
  });

  test('what is applied again changes nothing', async () => {
    const { stdout } = await shale(['plan', '--from', 'examples', '-f', 'examples', '-o', 'json']);
    expect((JSON.parse(stdout) as { actions: unknown[] }[]).flatMap(({ actions }) => actions)).toEqual([]);
  });

  test.each([
    ['reboot', 'karg.yaml', 1],
    ['reboot', 'chrony-v2.yaml', 0],
    ['restart', 'chrony-v2.yaml', 1],
    ['live', 'chrony-v2.yaml', 1],
    ['drain', 'chrony-v2.yaml', 0],
  ])('--fail-on %s of %s ends with %i', async (cost, name, code) => {
    const change = ['--from', 'examples', '-f', `examples/tour/${name}`];
    expect((await shale(['plan', ...change, '--fail-on', cost])).exitCode).toBe(code);
  });

  test('says where a pool allows soft reboots, and not of what is for the kernel', async () => {
    const pool = (name: string, annotations: string) =>
      [
        'apiVersion: machineconfiguration.openshift.io/v1',
        'kind: MachineConfigPool',
        `metadata: {name: ${name}, annotations: ${annotations}}`,
        'spec:',
        '  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}',
        `  nodeSelector: {matchLabels: {node-role.kubernetes.io/${name}: ""}}`,
        '---',
        '',
      ].join('\n');
    const soft = '{shale.dev/soft-reboot: "true"}';
    const pools = pool('soft', soft) + pool('worker', '{}');
    const from = await file('pools.yaml', pools + machineConfig('00-worker', {}));
    const ask = async (place: string) => {
      const storage = { files: [{ path: place, contents: { source: 'data:,x' } }] };
      const change = await file('change.yaml', machineConfig('90-change', { storage }));
      return (await shale(['plan', '--from', from, '-f', change])).stdout;
    };
    const bin = await ask('/etc/crio/crio.conf');
    expect(bin).toMatch(/^pool soft: Reboot\n {2}reboot: a soft reboot/m);
    expect(bin).toMatch(/^pool worker: Reboot\n(?! {2}reboot)/m);
    const sysctl = await ask('/etc/sysctl.d/90-x.conf');
    expect(sysctl).toContain('pool soft: Reboot');
    expect(sysctl).not.toContain('a soft one');
  });

  test('of what is not there any more needs --prune', async () => {
    const change = ['--from', 'examples', '-f', 'examples/20-worker-chrony.yaml'];
    expect((await shale(['plan', ...change])).stdout).not.toContain('removed');
    const { stdout } = await shale(['plan', ...change, '--prune']);
    expect(stdout).toContain('removed /etc/sysctl.d/90-shale.conf');
    // No file names a pool: those that there were are still asked.
    expect(stdout).toContain('pool infra: Reboot');
  });

  test('a pool that --prune takes away is a no', async () => {
    const pool = (name: string) =>
      JSON.stringify({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfigPool',
        metadata: { name },
        spec: { machineConfigSelector: {} },
      });
    const before = await file('pools.yaml', `${pool('edge')}\n---\n${pool('worker')}\n`);
    const after = await file('one-pool.yaml', pool('worker'));
    const { stdout, exitCode } = await shale(['plan', '--from', before, '-f', after, '--prune']);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('the change deletes MachineConfigPool edge');
  });

  test('as Markdown is a table that no subject can break out of', async () => {
    const config = machineConfig('pipes', {
      storage: { files: [{ path: '/etc/a|b', contents: { source: 'data:,' } }] },
    });
    const { stdout } = await shale(['plan', '--from', 'examples', '-f', '-', '-o', 'markdown'], {
      input: config,
    });
    expect(stdout).toContain('### pool worker: Reboot');
    expect(stdout).toContain('| added | `/etc/a\\|b` | Reboot |');
  });

  test('of what running nodes can not be brought to is a no, and names the MachineConfig', async () => {
    const input = machineConfig('99-dirs', { storage: { directories: [{ path: '/srv/data' }] } });
    const { stdout, exitCode } = await shale(['plan', '--from', 'examples', '-f', '-'], { input });
    expect(exitCode).toBe(1);
    expect(stdout).toContain(
      "can't be applied to running nodes: MachineConfig 99-dirs: $.storage.directories",
    );
  });

  test('refuses a policy that would not come into force', async () => {
    const policy = JSON.stringify({
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: 'cluster' },
      spec: {
        nodeDisruptionPolicy: {
          files: [{ path: '/etc/a', actions: [{ type: 'Reboot' }, { type: 'Drain' }] }],
        },
      },
    });
    const { exitCode, stderr } = await shale(['plan', '--from', 'examples', '-f', '-'], { input: policy });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('MachineConfiguration cluster: ');
  });
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
    const from = await file('old.yaml', machineConfig('p', users('$6$a$OLDHASH')));
    const to = await file('new.yaml', machineConfig('p', users('$6$a$NEWHASH')));
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
    const nothing = await file('nothing.yaml', '');
    for (const command of ['plan', 'diff']) {
      const { exitCode, stderr } = await shale([command, '--from', nothing, '-f', nothing]);
      expect(exitCode).toBe(2);
      expect(stderr).toContain('no pool found');
    }
  });

  test('a null where there is nothing is no value', async () => {
    const input = machineConfig('nulls', {}, { kernelArguments: null, extensions: null, fips: null });
    expect(await shale(['validate', '-f', '-'], { input })).toMatchObject({ exitCode: 0 });
  });
});

describe('shale validate', () => {
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

test("shale policies lists the defaults with the admin's over them", async () => {
  const { stdout } = await shale(['policies', '-f', 'examples/90-disruption-policy.yaml']);
  expect(stdout).toContain('/etc/chrony.conf: Restart(chronyd.service)');
  expect(stdout).toContain('/etc/containers/registries.conf: Special');
});

describe('policies of pools', () => {
  const labelled = (name: string, labels: object) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, labels },
    spec: {
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      nodeSelector: { matchLabels: { [name]: '' } },
    },
  });
  const configuration = (files: object[]) => ({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: {
      shale: {
        nodeDisruptionPolicies: [{ name: 'edge', poolSelector: { matchLabels: { tier: 'edge' } }, files }],
      },
    },
  });
  const app = (text: string) =>
    machineConfig('50-app', {
      storage: { files: [{ path: '/etc/app/a.conf', contents: { source: `data:,${text}` } }] },
    });
  const pools = [labelled('far', { tier: 'edge' }), labelled('near', {})];
  const policies = configuration([{ path: '/etc/app/*.conf', actions: [{ type: 'None' }] }]);
  const list = (...objects: (object | string)[]) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: objects.map((object) => (typeof object === 'string' ? JSON.parse(object) : object)),
    });

  test('a plan has for each pool what its policies say', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-pool-policies-'));
    await writeFile(path.join(dir, 'from.yaml'), list(...pools, policies, app('a')));
    const { stdout, exitCode } = await shale(['plan', '--from', dir, '-f', '-'], { input: app('b') });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /pool far: None\n +changed \/etc\/app\/a\.conf: None \(policy for \/etc\/app\/\*\.conf \(edge\)\)/,
    );
    expect(stdout).toContain('pool near: Reboot');
    const relabelled = list(labelled('near', { tier: 'edge' }), app('b'));
    const both = await shale(['plan', '--from', dir, '-f', '-'], { input: relabelled });
    expect(both.stdout).toContain('pool near: None');
    await rm(dir, { recursive: true });
  });

  test('shale policies shows those of a pool, and names the pools that have their own', async () => {
    const input = list(...pools, policies);
    const of = (...args: string[]) => shale(['policies', '-f', '-', ...args], { input });
    expect((await of('--pool', 'far')).stdout).toContain(
      "/etc/app/*.conf: None  (set by the admin's policy edge)",
    );
    expect((await of('--pool', 'near')).stdout).not.toContain('/etc/app');
    const whole = await of();
    expect(whole.stdout).not.toContain('/etc/app');
    expect(whole.stderr).toContain('far: edge');
    expect(await of('--pool', 'nobody')).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test.each(['/', '/**', '/etc/[ab]', '/etc/../x'])('a policy for %s is refused', async (where) => {
    const input = list(configuration([{ path: where, actions: [{ type: 'None' }] }]));
    const { stdout, exitCode } = await shale(['validate', '-f', '-'], { input });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/spec\.shale\.nodeDisruptionPolicies.*files.*path: /);
  });
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
