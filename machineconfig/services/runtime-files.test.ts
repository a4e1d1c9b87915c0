import { parse } from 'smol-toml';
import { expect, test } from 'vitest';
import type { ContainerRuntimeConfigSpec } from '../../api/container-runtime-config.ts';
import { runtimeFiles } from './runtime-files.ts';
import { type RuntimeEvidence, runtimeOf } from './runtime-flavour.ts';

type Settings = NonNullable<ContainerRuntimeConfigSpec['containerRuntimeConfig']>;
const of = (settings: Settings, flavour: 'cri-o' | 'containerd' = 'cri-o') =>
  runtimeFiles({ containerRuntimeConfig: settings }, flavour);

test('CRI-O reads each field from a drop-in of its own', () => {
  const { files } = of({ logLevel: 'debug', pidsLimit: 2048, logSizeMax: '10Mi', defaultRuntime: 'runc' });
  const read = files.map(({ path, text }) => [path, (parse(text)['crio'] as { runtime: object }).runtime]);
  expect(Object.fromEntries(read)).toEqual({
    '/etc/crio/crio.conf.d/98-ctrcfg-log-level.conf': { log_level: 'debug' },
    '/etc/crio/crio.conf.d/98-ctrcfg-pids-limit.conf': { pids_limit: 2048 },
    '/etc/crio/crio.conf.d/98-ctrcfg-log-size-max.conf': { log_size_max: 10 * 1024 * 1024 },
    '/etc/crio/crio.conf.d/98-ctrcfg-default-runtime.conf': { default_runtime: 'runc' },
  });
});

test.each([
  ['10Ei', '9223372036854775807'],
  ['9.1E', '9100000000000000000'],
  ['8Pi', '9007199254740992'],
  ['8192.5', '8193'],
  ['-1', '-1'],
])('logSizeMax %s is %s', (logSizeMax, written) => {
  expect(of({ logSizeMax }).files.map(({ text }) => text)).toEqual([
    `[crio.runtime]\nlog_size_max = ${written}\n`,
  ]);
});

test('containerd reads its log level, in a file of the version that leaves sections of every version alone', () => {
  const [file] = of({ logLevel: 'warn' }, 'containerd').files;
  expect(file?.path).toBe('/etc/containerd/conf.d/98-ctrcfg-log-level.toml');
  expect(parse(file?.text ?? '')).toEqual({ version: 2, debug: { level: 'warn' } });
});

test.each<[Settings, string[]]>([
  [{}, []],
  [{ pidsLimit: 0, logLevel: '' }, []],
  [{ pidsLimit: 20 }, []],
  [{ pidsLimit: 19 }, ['pidsLimit']],
  [{ pidsLimit: -1 }, ['pidsLimit']],
  [{ logSizeMax: -1 }, []],
  [{ logSizeMax: '0' }, []],
  [{ logSizeMax: 8193 }, []],
  [{ logSizeMax: '8Ki' }, ['logSizeMax']],
  [{ logSizeMax: '10 MB' }, ['logSizeMax']],
  [{ logSizeMax: '100m' }, ['logSizeMax']],
  [{ logLevel: 'loud' }, ['logLevel']],
  [{ overlaySize: '10G' }, ['overlaySize']],
  [{ containerGomaxprocsBehavior: 'Disabled' }, []],
  [{ containerGomaxprocsBehavior: 'Autosize' }, ['containerGomaxprocsBehavior']],
  [{ additionalImageStores: [{ path: '/a' }] }, ['additionalImageStores']],
  [{ additionalLayerStores: [{ path: '/a' }] }, ['additionalLayerStores']],
  [{ additionalArtifactStores: [{ path: '/a' }] }, ['additionalArtifactStores']],
])('%j has problems in %j', (settings, fields) => {
  const paths = of(settings).problems.map(({ path }) => path);
  expect(paths).toEqual(fields.map((field) => `spec.containerRuntimeConfig.${field}`));
});

test('settings of CRI-O are refused where nodes run containerd, with what to set instead', () => {
  const { problems, files } = of(
    { logLevel: 'info', pidsLimit: 100, logSizeMax: '1Mi', defaultRuntime: 'crun' },
    'containerd',
  );
  expect(files).toEqual([]);
  expect(problems.map(({ expected }) => expected)).toEqual([
    expect.stringContaining('podPidsLimit'),
    expect.stringContaining('containerLogMaxSize'),
    expect.stringContaining('RuntimeClass'),
  ]);
});

const nodes = (...versions: (string | undefined)[]): RuntimeEvidence => ({ stated: undefined, versions });
const stated = (value: RuntimeEvidence['stated'], ...versions: string[]): RuntimeEvidence => ({
  stated: value,
  versions,
});
const CRIO = 'cri-o://1.34.1';
const CONTAINERD = 'containerd://2.1.4';

test.each<[[RuntimeEvidence, ...RuntimeEvidence[]], string]>([
  [[nodes(CRIO, CRIO)], 'cri-o'],
  [[nodes(CONTAINERD, undefined)], 'containerd'],
  [[nodes()], 'no node has reported'],
  [[nodes(undefined)], 'no node has reported'],
  [[nodes(CRIO, CONTAINERD)], 'different container runtimes (containerd, cri-o)'],
  [[nodes('docker://20.10.1')], 'its nodes run docker'],
  [[stated('containerd', CRIO)], 'containerd'],
  [[stated('unreadable')], "its spec.shale.containerRuntime can't be read"],
  // Nodes of another pool that get the same drop-ins.
  [[nodes(CRIO), nodes(CONTAINERD)], 'different container runtimes'],
  [[nodes(CRIO), stated('containerd')], 'different container runtimes'],
  [[nodes(), nodes(CRIO)], 'cri-o'],
  [[stated('cri-o'), nodes(CONTAINERD)], 'cri-o'],
])('%j: %s', (pools, expected) => {
  const runtime = runtimeOf(pools);
  expect(runtime.ok ? runtime.flavour : runtime.why).toContain(expected);
  if (['cri-o', 'containerd'].includes(expected)) expect(runtime.ok).toBe(true);
});
