import { expect, test } from 'vitest';
import { configOf, unitsOf } from '../test/fixtures/configs.ts';
import type { NodeUnit } from './node-config.ts';
import { unitPreset } from './unit-preset.ts';

const of = (...units: readonly Partial<NodeUnit>[]) => configOf({}, { units: unitsOf(...units) });

test('instances are words of their template’s line, before the lines that name the template', () => {
  expect(
    unitPreset(
      of(
        { name: 'bar@.service', enabled: false },
        { name: 'bar@y.service', enabled: true },
        { name: 'bar@x.service', enabled: true },
        { name: 'bar@z.service', enabled: false },
        { name: 'a.service', enabled: true },
      ),
    ),
  ).toBe('enable bar@.service x y\ndisable bar@.service\ndisable bar@z.service\nenable a.service\n');
});

test('an instance that is enabled before its template is disabled is disabled with it', () => {
  expect(
    unitPreset(of({ name: 'bar@x.service', enabled: true }, { name: 'bar@.service', enabled: false })),
  ).toBe('disable bar@.service\n');
});

test('what the config brings has no line', () => {
  const contents = '[Install]\nWantedBy=x.target\n';
  const units = unitsOf(
    { name: 'bar@.service', contents },
    { name: 'bar@x.service', enabled: true },
    { name: 'own.service', contents, enabled: true },
    { name: 'file.service', enabled: true },
    { name: 'masked.service', enabled: true, masked: true },
    { name: 'neither.service' },
  );
  const config = configOf({ '/etc/systemd/system/file.service': contents }, { units });
  expect(unitPreset(config)).toBeUndefined();
});

test('a unit without text is the base’s', () => {
  expect(unitPreset(of({ name: 'a.service', contents: '', enabled: true }))).toBe('enable a.service\n');
});
