import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { defaultPolicySettings, effectivePolicies } from '../../disruption/effective-policies.ts';
import { formatEffects } from './mirror-effects.ts';
import { formatPredicted, predictForNodes, type RenderingTransition } from './predicted-transitions.ts';

const restart = { type: 'Restart' as const, restart: { serviceName: 'chronyd.service' } };
const policies = effectivePolicies(
  { files: [{ path: '/etc/chrony.conf', actions: [restart] }] },
  defaultPolicySettings,
);

function rendered(name: string, files: Readonly<Record<string, string>>): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: {
        ignition: { version: '3.5.0' },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 420,
            contents: { source: `data:,${text}` },
          })),
        },
      },
    },
  };
}

const configs = new Map(
  [
    rendered('a', { '/etc/chrony.conf': '1' }),
    rendered('b', { '/etc/chrony.conf': '1', '/etc/unknown': '1' }),
    rendered('c', { '/etc/chrony.conf': '2' }),
  ].map((config) => [config.metadata.name, config]),
);
const to = configs.get('c') ?? rendered('c', {});
const look = (...running: (string | undefined)[]) =>
  predictForNodes({ layered: false, running, configs: (name) => configs.get(name), to, policies });

describe('what a rendering will ask', () => {
  it('is recorded for each config that nodes run, most nodes first', () => {
    const predicted = look('b', 'a', 'a', undefined, 'gone', 'c');
    expect(
      predicted.map(({ from, nodes, actions }) => [from, nodes, actions.map(({ type }) => type)]),
    ).toEqual([
      ['a', 2, ['Restart']],
      ['b', 1, ['Reboot']],
      ['c', 1, []],
    ]);
  });

  it('is written with the summary first', () => {
    const text = formatPredicted(look('a', 'a', 'b'));
    expect(text).toMatch(
      /^\{"summary":"2 nodes: Restart\(chronyd\.service\); 1 node: Reboot","transitions":\[/,
    );
    expect(text).toContain('"rule":"policy for /etc/chrony.conf"');
    expect(formatPredicted([])).toContain('no node runs anything yet');
  });

  const DIGEST = `@sha256:${'1'.repeat(64)}`;
  const OTHER = `@sha256:${'2'.repeat(64)}`;
  it.each([
    ['another tag of the same digest', `r.test/os:1${DIGEST}`, `r.test/os:2${DIGEST}`, '1 node: None'],
    ['another digest', `r.test/os:1${DIGEST}`, `r.test/os:1${OTHER}`, '1 node: Reboot'],
    ['another repository', `r.test/os${DIGEST}`, `r.test/copy${DIGEST}`, '1 node: Reboot'],
    ['a first name', '', 'r.test/os:1', '1 node: Reboot'],
    [
      'another tag',
      'r.test/os:1',
      'r.test/os:2',
      '1 node: Reboot, unless the base image has the same digest under its new name',
    ],
  ])('says what is known of a base image with %s', (_what, from, to, summary) => {
    const named = (name: string, osImageURL: string) => {
      const config = rendered(name, {});
      return { ...config, spec: { ...config.spec, osImageURL } };
    };
    const before = named('a', from);
    const predicted = predictForNodes({
      layered: false,
      running: ['a'],
      configs: () => before,
      to: named('b', to),
      policies,
    });
    expect(JSON.parse(formatPredicted(predicted))).toMatchObject({ summary });
  });

  it('promises no reboot for another tag only where nothing else asks for one', () => {
    const named = (name: string, osImageURL: string, files: Record<string, string>) => {
      const config = rendered(name, files);
      return { ...config, spec: { ...config.spec, osImageURL } };
    };
    const before = named('a', 'r.test/os:1', {});
    const to = named('b', 'r.test/os:2', { '/etc/unknown': '1' });
    const [predicted] = predictForNodes({
      layered: false,
      running: ['a'],
      configs: () => before,
      to,
      policies,
    });
    expect(predicted?.dependsOnBase).toBeUndefined();
    expect(predicted?.causes.map(({ rule }) => rule)).toContain(
      'osImageURL takes effect at boot, unless both names stand for the same digest, which is not known before the build: Reboot',
    );
  });

  it('leaves out causes where they are too many, and then transitions', () => {
    const cause = {
      subject: '/etc/x',
      kind: 'file',
      change: 'changed',
      rule: 'r'.repeat(200),
      actions: [],
    } as const;
    const one = (from: string): RenderingTransition => ({
      from,
      nodes: 1,
      actions: [],
      causes: Array(100).fill(cause),
    });
    const without = formatPredicted([one('a')]);
    expect(without).not.toContain('rrr');
    expect(without).toContain('"from":"a"');
    const many = formatPredicted(Array.from({ length: 2000 }, (_, i) => one(`rendered-${i}`)));
    expect(many.length).toBeLessThanOrEqual(16 * 1024);
    expect(many).not.toContain('transitions');
  });
});

it('effects of a mirror object are kept by pool', () => {
  const effect = { config: 'rendered-x', actions: [{ type: 'Drain' as const }], rule: 'r' };
  const one = formatEffects(undefined, 'worker', effect);
  const two = formatEffects(one, 'infra', { ...effect, actions: [] });
  expect(JSON.parse(two)).toMatchObject({
    summary: 'infra: None; worker: Drain',
    pools: { infra: { actions: 'None' }, worker: { actions: 'Drain' } },
  });
  expect(formatEffects('no json', 'worker', effect)).toBe(one);
});

it('nothing is predicted for a rendering that can not be read', () => {
  const broken = rendered('d', {});
  const predicted = predictForNodes({
    layered: false,
    running: ['a'],
    configs: (name) => configs.get(name),
    to: { ...broken, spec: { config: { ignition: { version: '99.0.0' } } } },
    policies,
  });
  expect(predicted).toEqual([]);
});
