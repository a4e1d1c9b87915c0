/**
 * Helm with the chart as `make chart` writes it and as `make release` pushes it: from a registry onto an API server.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SHALE_VERSION } from '../../api/names.ts';
import { writeChart } from '../../charts/make.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { type Chart, packagedChart } from '../../release/installation.ts';
import { publishRelease } from '../../release/publish.ts';
import { type Api, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { isOnPath } from './on-path.ts';

const PULLSPEC = `registry.example.com/os/shale@sha256:${'0'.repeat(64)}`;
const title = isOnPath('helm') ? 'Helm' : 'Helm (skipped: there is no helm on the PATH)';

describe.runIf(isOnPath('helm'))(title, () => {
  const signal = deadline(300_000);
  let dir: string;
  let registry: DockerRegistry;
  let api: Api;
  let chart: Chart;
  let released: string;

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-helm-'));
    [registry, api, chart] = await Promise.all([
      startDockerRegistry({ dir }),
      startApi(),
      packagedChart(PULLSPEC, SHALE_VERSION),
      writeChart(path.join(dir, 'chart')),
    ]);
    await writeFile(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
    released = `${registry.host}/os/charts/shale`;
    const at = { ...parseReference(released), tag: SHALE_VERSION };
    const publication = { at, content: chart.content, subject: chart.manifest, sboms: [] };
    const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
    await publishRelease(client, publication, { statement: '{}', key: undefined }, signal);
  }, patience(120_000));
  afterAll(async () => {
    await Promise.all([registry.stop(), api.stop()]);
    await rm(dir, { recursive: true, force: true });
  });

  const run = async (program: 'helm' | 'kubectl', args: readonly string[]) => {
    const env = { HELM_CACHE_HOME: dir, HELM_CONFIG_HOME: dir, HELM_DATA_HOME: dir };
    const { stdout } = await execa(program, args, {
      cwd: dir,
      cancelSignal: signal,
      env: { ...env, KUBECONFIG: path.join(dir, 'kubeconfig') },
    });
    return stdout;
  };
  const helm = (...args: readonly string[]) => run('helm', args);
  const fromRegistry = () => [`oci://${released}`, '--version', SHALE_VERSION, '--plain-http'];

  test('finds nothing to complain of', async () => {
    expect(await helm('lint', 'chart', '--strict')).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  test('rejects a value that the chart does not have', async () => {
    const args = ['template', 'shale', 'chart', '--set', 'operator.replica=2'];
    await expect(helm(...args)).rejects.toMatchObject({ stderr: expect.stringContaining('replica') });
  });

  test('pulls the chart of a release from a registry, and pushes it to another place', async () => {
    const file = `shale-${SHALE_VERSION}.tgz`;
    for (const place of ['pulled', 'again']) await mkdir(path.join(dir, place));
    await helm('pull', ...fromRegistry(), '--destination', 'pulled');
    expect((await readFile(path.join(dir, 'pulled', file))).equals(chart.archive)).toBe(true);
    const other = `oci://${registry.host}/elsewhere`;
    await helm('push', path.join('pulled', file), other, '--plain-http');
    const args = [
      'pull',
      `${other}/shale`,
      '--version',
      SHALE_VERSION,
      '--plain-http',
      '--destination',
      'again',
    ];
    await helm(...args);
    expect((await readFile(path.join(dir, 'again', file))).equals(chart.archive)).toBe(true);
  });

  test('installs, upgrades, rolls back and uninstalls it', { timeout: patience(120_000) }, async () => {
    const shale = ['shale', ...fromRegistry(), '--namespace', 'shale-system'];
    const operator = async (field: string) =>
      run('kubectl', ['-n', 'shale-system', 'get', 'deploy/shale-operator', '-o', `jsonpath={${field}}`]);
    const image = '.spec.template.spec.containers[0].image';

    await helm('install', ...shale, '--create-namespace', '--dry-run=server');
    await helm('install', ...shale, '--create-namespace');
    expect(await operator(image)).toBe(PULLSPEC);
    const args = ['operator.replicas=2', 'image=registry.example.com/shale:next', 'livePage=true'];
    await helm('upgrade', ...shale, ...args.flatMap((value) => ['--set', value]));
    expect(await operator('.spec.replicas')).toBe('2');
    expect(await operator(image)).toBe('registry.example.com/shale:next');
    expect(await run('kubectl', ['-n', 'shale-system', 'get', 'pdb', '-o', 'name'])).toContain(
      'shale-operator',
    );

    await helm('rollback', 'shale', '1', '--namespace', 'shale-system');
    expect(await operator('.spec.replicas')).toBe('1');
    expect(await operator(image)).toBe(PULLSPEC);
    expect(await run('kubectl', ['-n', 'shale-system', 'get', 'pdb', '-o', 'name'])).toBe('');

    await helm('uninstall', 'shale', '--namespace', 'shale-system');
    const kinds = 'deploy,ds,clusterrole,clusterrolebinding,validatingadmissionpolicy';
    const left = await run('kubectl', [
      'get',
      kinds,
      '-A',
      '-l',
      'app.kubernetes.io/part-of=shale',
      '-o',
      'name',
    ]);
    expect(left).toBe('');
    // The chart keeps these: deleting them would delete MachineConfigs, and leases that other operators hold.
    const kept = await run('kubectl', [
      'get',
      'crd/machineconfigs.machineconfiguration.openshift.io',
      'ns/medik8s-leases',
      '-o',
      'name',
    ]);
    expect(kept.split('\n')).toHaveLength(2);
  });
});
