/** `shale plan` on files alone, as a process: text, Markdown and exit codes. */
import { describe, expect, test } from 'vitest';
import { inputFile } from './input-file.ts';
import { machineConfig, shale } from './shale-process.ts';

const LAYERED = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: 'r.example.org/os/worker:1' },
};

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

  test('a Containerfile without an architecture is for every one, as in a cluster', async () => {
    const config = (spec: object) =>
      inputFile('config.json', JSON.stringify({ ...LAYERED, spec: { ...LAYERED.spec, ...spec } }));
    const containerFile = [{ content: 'FROM configs AS final\nRUN true\n' }];
    const before = await config({});
    const after = await config({ containerFile });
    const { stdout } = await shale(['plan', '--from', 'examples', before, '-f', after]);
    expect(stdout).toContain('pool worker: Reboot');
    expect(stdout).toContain('a container engine is required for a Containerfile');
    const twice = await config({ containerFile: [...containerFile, ...containerFile] });
    const refused = await shale(['plan', '--from', 'examples', '-f', twice]);
    expect(refused.stderr).toContain(
      'MachineOSConfig worker: spec.containerFile[1]: is "NoArch" a second time; expected each item once by containerfileArch',
    );
    expect(refused.exitCode).toBe(2);
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
    const pool = (name: string, settings: string) =>
      [
        'apiVersion: machineconfiguration.openshift.io/v1',
        'kind: MachineConfigPool',
        `metadata: {name: ${name}}`,
        'spec:',
        `  shale: ${settings}`,
        '  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}',
        `  nodeSelector: {matchLabels: {node-role.kubernetes.io/${name}: ""}}`,
        '---',
        '',
      ].join('\n');
    const soft = '{softReboot: true}';
    const pools = pool('soft', soft) + pool('worker', '{}');
    const from = await inputFile('pools.yaml', pools + machineConfig('00-worker', {}));
    const ask = async (place: string) => {
      const storage = { files: [{ path: place, contents: { source: 'data:,x' } }] };
      const change = await inputFile('change.yaml', machineConfig('90-change', { storage }));
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
    const before = await inputFile('pools.yaml', `${pool('edge')}\n---\n${pool('worker')}\n`);
    const after = await inputFile('one-pool.yaml', pool('worker'));
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

describe('what no image can carry', () => {
  const passwd = { users: [{ name: 'core', passwordHash: '$6$abc' }] };
  const config = {
    ...JSON.parse(machineConfig('50-password', {})),
    spec: { config: { ignition: { version: '3.5.0' }, passwd } },
  };
  const layering = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'on-cluster-layering', namespace: 'shale-system' },
    data: {
      enabled: 'true',
      imageRepository: 'r.example.org/os/{pool}',
      pushSecret: 'push',
      baseImage: 'r.example.org/stock:1',
    },
  };
  const refused = /pool worker: no image can be built: passwordHash of core: .*\(MachineConfig 50-password\)/;

  test.each<[string, object]>([
    ['a MachineOSConfig', LAYERED],
    ['the layering switch', layering],
  ])('is refused by validate and plan for a pool that is layered by %s', async (_how, layered) => {
    const input = JSON.stringify(config);
    const layer = await inputFile('layered.json', JSON.stringify(layered));
    const validated = await shale(['validate', '-f', '-', layer], { input });
    expect(validated).toMatchObject({ exitCode: 1, stdout: expect.stringMatching(refused) });
    const plan = ['plan', '--from', layer, '-f', '-', '--fail-on', 'reboot'];
    const planned = await shale(plan, { input });
    expect(planned).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('no image can be built: passwordHash of core'),
    });
  });

  test('is refused as well where the change does not bring it', async () => {
    const before = await inputFile(
      'layered.json',
      `${JSON.stringify(LAYERED)}\n---\n${JSON.stringify(config)}`,
    );
    const planned = await shale(['plan', '--from', before, '-f', '-'], { input: JSON.stringify(config) });
    expect(planned).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('no image can be built: passwordHash of core'),
    });
  });
});
