import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatActions, type PolicyAction } from '../api/disruption-action.ts';
import type { ClusterPolicies, NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { configOf, emptyConfig, fileOf, unitsOf } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';

const policy: NodeDisruptionPolicy = {
  files: [
    { path: '/etc/chrony.conf', actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] },
    { path: '/etc/motd', actions: [{ type: 'None' }] },
    { path: '/etc/app', actions: [{ type: 'Reload', reload: { serviceName: 'app.service' } }] },
    {
      path: '/etc/app/core',
      actions: [{ type: 'Drain' }, { type: 'Restart', restart: { serviceName: 'app.service' } }],
    },
    { path: '/etc/app/core/boot', actions: [{ type: 'Reboot' }] },
  ],
  units: [{ name: 'app.service', actions: [{ type: 'Restart', restart: { serviceName: 'app.service' } }] }],
};
const policies = effectivePolicies(policy, defaultPolicySettings);
const decide = (from: NodeConfig, to: NodeConfig) =>
  formatActions(decideActions({ layered: false, from, to, policies }).actions);

describe('decideActions', () => {
  const one = (path: string) => [configOf({ [path]: 'a' }), configOf({ [path]: 'b' })] as const;

  test.each<[string, NodeConfig, NodeConfig, string]>([
    // The drop-ins that Shale generates: the files that leave running pods alone, and no others.
    [
      'what only concerns the kubelet’s own work',
      ...one('/etc/kubernetes/kubelet.conf.d/98-kubeletconfig-live.conf'),
      'Restart(kubelet.service)',
    ],
    ['what pods are admitted by', ...one('/etc/kubernetes/kubelet.conf.d/98-kubeletconfig.conf'), 'Reboot'],
    ['a kubelet’s drop-in by an admin', ...one('/etc/kubernetes/kubelet.conf.d/99-mine.conf'), 'Reboot'],
    ['CRI-O’s log level', ...one('/etc/crio/crio.conf.d/98-ctrcfg-log-level.conf'), 'Reload(crio.service)'],
    ['another drop-in of CRI-O', ...one('/etc/crio/crio.conf.d/98-ctrcfg-pids-limit.conf'), 'Reboot'],
    ['containerd’s log level', ...one('/etc/containerd/conf.d/98-ctrcfg-log-level.toml'), 'Reboot'],
    ['identical configs', ...([configOf({ '/etc/x': 'a' }), configOf({ '/etc/x': 'a' })] as const), 'None'],
    ['a change with no policy', ...one('/etc/unknown'), 'Reboot'],
    ['only "do nothing"', ...one('/etc/motd'), 'None'],
    ['only "service restart"', ...one('/etc/chrony.conf'), 'Restart(chronyd.service)'],
    ['only "drain + service restart"', ...one('/etc/app/core/x'), 'Drain, Restart(app.service)'],
    ['a directory above', ...one('/etc/app/x/y'), 'Reload(app.service)'],
    ['the longest directory wins', ...one('/etc/app/core/boot/x'), 'Reboot'],
    ['a name that only begins like a directory', ...one('/etc/apple'), 'Reboot'],
    ['an added file', emptyConfig, configOf({ '/etc/chrony.conf': 'a' }), 'Restart(chronyd.service)'],
    ['a removed file', configOf({ '/etc/chrony.conf': 'a' }), emptyConfig, 'Restart(chronyd.service)'],
    [
      'exceptions combined with a change that needs a reboot',
      configOf({ '/etc/chrony.conf': 'a' }),
      configOf({ '/etc/chrony.conf': 'b', '/etc/unknown': 'x' }),
      'Reboot',
    ],
    [
      'None is dropped beside others',
      emptyConfig,
      configOf({ '/etc/motd': 'a', '/etc/chrony.conf': 'a' }),
      'Restart(chronyd.service)',
    ],
    [
      'each action once',
      emptyConfig,
      configOf({ '/etc/app/a': 'a', '/etc/app/b': 'a' }),
      'Reload(app.service)',
    ],
    [
      'a unit: systemd hears of it before the restart',
      emptyConfig,
      configOf({}, { units: unitsOf({ name: 'app.service', contents: '[Unit]' }) }),
      'DaemonReload, Restart(app.service)',
    ],
    [
      'a unit with no policy',
      emptyConfig,
      configOf({}, { units: unitsOf({ name: 'other.service' }) }),
      'Reboot',
    ],
    ['an SSH key', emptyConfig, configOf({}, { sshKeys: new Map([['core', ['key']]]) }), 'None'],
    ['a kernel argument', emptyConfig, configOf({}, { kernelArguments: ['a=b'] }), 'Reboot'],
    [
      'the order of kernel arguments',
      configOf({}, { kernelArguments: ['a', 'b'] }),
      configOf({}, { kernelArguments: ['b', 'a'] }),
      'Reboot',
    ],
    ['the OS image', emptyConfig, configOf({}, { osImageURL: 'r.io/os@sha256:1' }), 'Reboot'],
    [
      'only the mode',
      configOf({ '/etc/chrony.conf': 'a' }),
      configOf(
        {},
        { files: new Map([['/etc/chrony.conf', fileOf('/etc/chrony.conf', 'a', { mode: 0o600 })]]) },
      ),
      'Restart(chronyd.service)',
    ],
    [
      'a directory entry',
      emptyConfig,
      configOf(
        {},
        {
          directories: new Map([
            ['/etc/d', { path: '/etc/d', mode: 0o755, user: { id: 0 }, group: { id: 0 } }],
          ]),
        },
      ),
      'Reboot',
    ],
  ])('%s', (_name, from, to, expected) => {
    expect(decide(from, to)).toBe(expected);
  });

  test('another base image always reboots, and is the cause', () => {
    const { actions, causes } = decideActions({
      layered: false,
      from: emptyConfig,
      to: emptyConfig,
      policies,
      fromBase: 'a',
      toBase: 'b',
    });
    expect(formatActions(actions)).toBe('Reboot');
    expect(causes.map(({ subject }) => subject)).toEqual(['baseImage']);
  });

  test('each cause names its subject and the rule that decided', () => {
    const { causes } = decideActions({
      layered: false,
      from: emptyConfig,
      to: configOf({ '/etc/chrony.conf': 'a', '/etc/z': '' }),
      policies,
    });
    expect(causes.map(({ subject, rule }) => `${subject}: ${rule}`)).toEqual([
      '/etc/chrony.conf: policy for /etc/chrony.conf',
      '/etc/z: no policy covers it: Reboot',
    ]);
  });

  test('registries.conf: mirrors for digests are added live, a removed registry drains', () => {
    const conf = (...mirrors: string[]) =>
      `[[registry]]\nlocation = "quay.io"\nmirror-by-digest-only = true\n${mirrors.map((m) => `[[registry.mirror]]\nlocation = "${m}"\n`).join('')}`;
    const at = (text: string) => configOf({ '/etc/containers/registries.conf': text });
    expect(decide(at(conf('a.io')), at(conf('a.io', 'b.io')))).toBe('Reload(crio.service)');
    expect(decide(at(conf('a.io', 'b.io')), at(conf('a.io')))).toBe('Drain, Reload(crio.service)');
    expect(decide(at(conf('a.io')), at('not = [toml'))).toBe('Drain, Reload(crio.service)');
  });
});

test('a changed CA bundle reaches a runtime that another change restarts, too', () => {
  const restart = { type: 'Restart' as const, restart: { serviceName: 'crio.service' } };
  const own = effectivePolicies(
    { files: [{ path: '/etc/crio', actions: [restart] }] },
    defaultPolicySettings,
  );
  const to = configOf({
    '/etc/crio/x.conf': 'a',
    '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt': 'a',
  });
  expect(formatActions(decideActions({ layered: false, from: emptyConfig, to, policies: own }).actions)).toBe(
    'Restart(coreos-update-ca-trust.service), Restart(crio.service)',
  );
});

test("Special reloads the container runtime's unit of the policies, and reboots where they name none", () => {
  const at = (text: string) => configOf({ '/etc/containers/registries.conf': text });
  const change = { from: at(''), to: at('[[registry]]\nlocation = "quay.io"\n') };
  const containerd = effectivePolicies(undefined, { containerRuntimeUnit: 'containerd.service' });
  const ask = (policies: ClusterPolicies) =>
    formatActions(decideActions({ layered: false, ...change, policies }).actions);
  expect(ask(containerd)).toBe('Drain, Reload(containerd.service)');
  const { containerRuntimeUnit: _, ...unnamed } = containerd;
  expect(ask(unnamed)).toBe('Reboot');
});

test.each<[string, PolicyAction[], string]>([
  [
    'Drain goes before DaemonReload, and that before services',
    [
      { type: 'Restart', restart: { serviceName: 'b.service' } },
      { type: 'DaemonReload' },
      { type: 'Reload', reload: { serviceName: 'a.service' } },
      { type: 'Drain' },
    ],
    'Drain, DaemonReload, Restart(b.service), Reload(a.service)',
  ],
  ['Drain after DaemonReload', [{ type: 'DaemonReload' }, { type: 'Drain' }], 'Drain, DaemonReload'],
  [
    'services keep the order of the policy',
    [
      { type: 'Reload', reload: { serviceName: 'z.service' } },
      { type: 'Reload', reload: { serviceName: 'a.service' } },
    ],
    'Reload(z.service), Reload(a.service)',
  ],
  ['Reload without its service', [{ type: 'Reload' }], 'Reboot'],
  ['Restart without its service', [{ type: 'Restart' }, { type: 'Drain' }], 'Reboot'],
  ['Reboot beside others', [{ type: 'Drain' }, { type: 'Reboot' }], 'Reboot'],
])('the order of actions: %s', (_name, actions, expected) => {
  const own = effectivePolicies({ files: [{ path: '/etc/x', actions }] }, defaultPolicySettings);
  const { causes, ...decision } = decideActions({
    layered: false,
    from: emptyConfig,
    to: configOf({ '/etc/x': 'a' }),
    policies: own,
  });
  expect(formatActions(decision.actions)).toBe(expected);
  expect(formatActions(causes[0]?.actions ?? [])).toBe(expected);
});

test.each([
  ['/etc/systemd/system/x.service', 'DaemonReload, Restart(x.service)'],
  ['/usr/lib/systemd/system/x.service.d/1.conf', 'DaemonReload, Restart(x.service)'],
  ['/run/systemd/system/x.service', 'DaemonReload, Restart(x.service)'],
  ['/etc/systemd/system.conf', 'Restart(x.service)'],
  ['/srv/etc/systemd/system/x.service', 'Restart(x.service)'],
])('systemd rereads a changed unit file before its service restarts: %s', (path, expected) => {
  const actions = [{ type: 'Restart' as const, restart: { serviceName: 'x.service' } }];
  const own = effectivePolicies({ files: [{ path, actions }] }, defaultPolicySettings);
  const { actions: decided } = decideActions({
    layered: false,
    from: emptyConfig,
    to: configOf({ [path]: 'a' }),
    policies: own,
  });
  expect(formatActions(decided)).toBe(expected);
});

test.each<[string, NodeConfig, NodeConfig, string, string]>([
  [
    'a password hash',
    emptyConfig,
    configOf({}, { passwordHashes: new Map([['core', 'x']]) }),
    'core',
    'sshKey',
  ],
  [
    'a link',
    emptyConfig,
    configOf(
      {},
      {
        links: new Map([
          ['/etc/l', { path: '/etc/l', target: '/x', hard: false, user: { id: 0 }, group: { id: 0 } }],
        ]),
      },
    ),
    '/etc/l',
    'file',
  ],
  [
    'a removed unit',
    configOf({}, { units: unitsOf({ name: 'o.service' }) }),
    emptyConfig,
    'o.service',
    'unit',
  ],
])('the cause of %s names it', (_name, from, to, subject, kind) => {
  expect(decideActions({ layered: false, from, to, policies }).causes).toMatchObject([{ subject, kind }]);
});

test('a policy without a service needs no DaemonReload for a unit', () => {
  const units = [{ name: 'x.service', actions: [{ type: 'Drain' as const }] }];
  const own = effectivePolicies({ units }, defaultPolicySettings);
  const to = configOf({}, { units: unitsOf({ name: 'x.service' }) });
  expect(formatActions(decideActions({ layered: false, from: emptyConfig, to, policies: own }).actions)).toBe(
    'Drain',
  );
});

test('another name of the same base image needs no action, where its digest is known', () => {
  const from = configOf({}, { osImageURL: 'r.io/os:1' });
  const to = configOf({}, { osImageURL: 'r.io/os:2' });
  const ask = (fromBase?: string, toBase?: string) =>
    decideActions({ layered: false, from, to, policies, fromBase, toBase });
  const same = ask('r.io/os@sha256:1', 'r.io/os@sha256:1');
  expect(formatActions(same.actions)).toBe('None');
  expect(same.causes.map(({ rule }) => rule)).toEqual([
    'both names are of the base image r.io/os@sha256:1: no action',
  ]);
  expect(formatActions(ask('r.io/os@sha256:1', 'r.io/os@sha256:2').actions)).toBe('Reboot');
  expect(formatActions(ask('', '').actions)).toBe('Reboot');
  expect(formatActions(ask().actions)).toBe('Reboot');
});

test('an unknown base before means Reboot, and an equal base nothing', () => {
  const ask = (fromBase: string | undefined, toBase: string | undefined) =>
    decideActions({
      layered: false,
      from: emptyConfig,
      to: emptyConfig,
      policies,
      fromBase,
      toBase,
    });
  expect(ask(undefined, 'b').causes[0]?.rule).toBe('the base image changes from an unknown one to b: Reboot');
  expect(formatActions(ask(undefined, 'b').actions)).toBe('Reboot');
  expect(formatActions(ask('', 'b').actions)).toBe('Reboot');
  expect(formatActions(ask('b', undefined).actions)).toBe('Reboot');
  expect(formatActions(ask('b', 'b').actions)).toBe('None');
});

const paths = ['/etc/chrony.conf', '/etc/motd', '/etc/app/a', '/etc/app/core/b', '/etc/unknown'];
const anyConfig = fc
  .dictionary(fc.constantFrom(...paths), fc.constantFrom('a', 'b'), { maxKeys: 5 })
  .map((files) => configOf(files));

test('the actions of a change include what each of its paths requires', () => {
  fc.assert(
    fc.property(anyConfig, anyConfig, (from, to) => {
      const { actions, causes } = decideActions({ layered: false, from, to, policies });
      const whole = new Set(actions.map((action) => JSON.stringify(action)));
      if (actions.some(({ type }) => type === 'Reboot')) return;
      for (const cause of causes) {
        for (const action of cause.actions) expect(whole).toContain(JSON.stringify(action));
      }
    }),
  );
});

test('no change requires no actions', () => {
  fc.assert(
    fc.property(anyConfig, (config) => {
      expect(decideActions({ layered: false, from: config, to: config, policies })).toEqual({
        actions: [],
        causes: [],
      });
    }),
  );
});
