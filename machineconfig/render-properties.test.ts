import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { files, render, tryRender } from '../test/fixtures/rendering.ts';
import { canonicalJson } from './canonical-json.ts';
import { ParsedConfigs } from './parse-machine-config.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { machineConfigs } from './testdata/arbitrary.ts';
import { file, machineConfig } from './testdata/build.ts';

describe('any MachineConfigs', () => {
  it('render to the same bytes in any order', () => {
    fc.assert(
      fc.property(
        machineConfigs.chain((configs) =>
          fc.tuple(fc.constant(configs), fc.shuffledSubarray(configs, { minLength: configs.length })),
        ),
        ([configs, shuffled]) => {
          expect(JSON.stringify(tryRender(shuffled))).toBe(JSON.stringify(tryRender(configs)));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('do not change their inputs', () => {
    fc.assert(
      fc.property(machineConfigs, (configs) => {
        const before = JSON.stringify(configs);
        tryRender(configs);
        expect(JSON.stringify(configs)).toBe(before);
      }),
    );
  });

  it('merge to themselves again', () => {
    fc.assert(
      fc.property(machineConfigs, (configs) => {
        const rendering = tryRender(configs);
        fc.pre(rendering.ok);
        const { spec } = rendering.rendered;
        const again = render([machineConfig('again', spec.config, { ...spec })]);
        expect(canonicalJson(again.rendered.spec)).toBe(canonicalJson(spec));
      }),
      { numRuns: 300 },
    );
  });

  it('merge to the same config at once and in two steps', () => {
    fc.assert(
      fc.property(machineConfigs, fc.nat(), (configs, at) => {
        const whole = tryRender(configs);
        fc.pre(whole.ok);
        const cut = at % configs.length;
        const byName = new Map(configs.map((config) => [config.metadata.name, config]));
        const ordered = whole.sources.flatMap((name) => byName.get(name) ?? []);
        const first = cut === 0 ? undefined : tryRender(ordered.slice(0, cut));
        fc.pre(first === undefined || first.ok);
        const base = first?.ok ? [machineConfig('!', first.rendered.spec.config)] : [];
        const rest = ordered
          .slice(cut)
          .map((config) => machineConfig(config.metadata.name, config.spec.config));
        const named = rest.map((config, index) => ({
          ...config,
          metadata: { ...config.metadata, name: String(index).padStart(3, '0') },
        }));
        expect(render([...base, ...named]).rendered.spec.config).toEqual(whole.rendered.spec.config);
      }),
      { numRuns: 300 },
    );
  });

  it('can be parsed after rendering', () => {
    fc.assert(
      fc.property(machineConfigs, (configs) => {
        const rendering = tryRender(configs);
        fc.pre(rendering.ok);
        expect(parseNodeConfig(rendering.rendered)).toMatchObject({ ok: true });
      }),
      { numRuns: 300 },
    );
  });
});

describe('what was parsed before', () => {
  it('changes nothing of a rendering, whatever changed since', () => {
    fc.assert(
      fc.property(machineConfigs, machineConfigs, (before, after) => {
        const parsedBefore = new ParsedConfigs();
        const mixed = after.map((config, index) => (index % 2 === 0 ? config : (before[index] ?? config)));
        for (const configs of [before, mixed, before])
          expect(tryRender(configs, { parsedBefore })).toEqual(tryRender(configs));
        const limits = { fileBytes: 1, configBytes: 1 };
        expect(tryRender(before, { parsedBefore, limits })).toEqual(tryRender(before, { limits }));
      }),
      { numRuns: 30 },
    );
  });

  it('is not parsed again; another version of a MachineConfig is', () => {
    const parsedBefore = new ParsedConfigs();
    const read: string[] = [];
    const version = (content: string): MachineConfig => {
      const config = machineConfig('a', files(file('/a', content)));
      const spec = {
        get config() {
          read.push(content);
          return config.spec.config ?? {};
        },
      };
      return { ...config, spec };
    };
    const [first, second] = [version('1'), version('2')];
    const names = [first, first, second, first].map(
      (config) => render([config], { parsedBefore }).rendered.metadata.name,
    );
    expect(read).toEqual(['1', '2']);
    expect([names[0] === names[1], names[0] === names[3], names[0] === names[2]]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
