import { describe, expect, it } from 'vitest';
import type { DisruptionCause } from '../../api/disruption-action.ts';
import type { ImageDigestMirrorSet } from '../../api/image-sources.ts';
import { formatRuleOrigin } from '../../machineconfig/registries/registries-conf.ts';
import { configOf } from '../../test/fixtures/configs.ts';
import { formatEffects, type MirrorObject, mirrorEffect } from './mirror-effects.ts';

const CONF = '/etc/containers/registries.conf';
const rules = (mirror: string) =>
  formatRuleOrigin({
    kind: 'ImageDigestMirrorSet',
    source: 'r.example.com/a',
    mirrors: [mirror],
    never: false,
  });
const from = configOf({ [CONF]: rules('m-1.example.com/a') }, { name: 'rendered-1' });
const to = configOf({ [CONF]: rules('m-2.example.com/a') }, { name: 'rendered-2' });
const cause: DisruptionCause = {
  subject: CONF,
  change: 'changed',
  rule: 'default',
  actions: [{ type: 'Restart', service: 'crio.service' }],
} as DisruptionCause;

function mirrors(source: string): ImageDigestMirrorSet {
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImageDigestMirrorSet',
    metadata: { name: 'm' },
    spec: { imageDigestMirrors: [{ source, mirrors: [] }] },
  } as ImageDigestMirrorSet;
}

const effectOf = (object: MirrorObject, causes = [cause], target = to) =>
  mirrorEffect(object, from, target, { causes });

describe('the effect of a mirror object', () => {
  it('is that of registries.conf where one of its rules changes', () => {
    const { actions, rule } = cause;
    expect(effectOf(mirrors('r.example.com/a'))).toEqual({ config: 'rendered-2', actions, rule });
  });

  it.each<[string, Parameters<typeof effectOf>]>([
    ['has rules for other sources', [mirrors('r.example.com/b')]],
    ['is of another kind', [{ ...mirrors('r.example.com/a'), kind: 'ImageTagMirrorSet' }]],
    ['has no rules', [{ ...mirrors('x'), spec: {} }]],
    ['does not change', [mirrors('r.example.com/a'), [cause], from]],
    ['has a part in nothing that nodes do', [mirrors('r.example.com/a'), []]],
  ])('is none where it %s', (_what, given) => {
    expect(effectOf(...given)).toBeUndefined();
  });
});

describe('the annotation', () => {
  const effect = { config: 'c', actions: cause.actions, rule: 'default' };
  const parsed = (before: string | undefined, pool: string) =>
    JSON.parse(formatEffects(before, pool, effect)) as { summary: string; pools: Record<string, unknown> };

  it('has one entry for each pool, in order, and replaces its own', () => {
    const worker = formatEffects(undefined, 'worker', effect);
    const both = formatEffects(worker, 'infra', { ...effect, config: 'd' });
    expect(Object.keys(parsed(both, 'worker').pools)).toEqual(['infra', 'worker']);
    expect(parsed(both, 'worker').summary).toMatch(/^infra: .*crio.*; worker: .*crio/);
    expect(formatEffects(both, 'worker', effect)).toBe(both);
  });

  it.each(['not JSON', '{}'])('replaces what somebody else wrote: %s', (before) => {
    expect(Object.keys(parsed(before, 'worker').pools)).toEqual(['worker']);
  });
});
