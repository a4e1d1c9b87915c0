import { describe, expect, it } from 'vitest';
import { readSettings } from './read-settings.ts';
import { FleetLockField, readFleetLockUrl } from './values.ts';

/** @returns what the annotation says, and why it can't be read. */
function annotated(setting: 'alerts' | 'queries', text: string) {
  const metadata = { name: 'worker', annotations: { [`shale.dev/hold-on-${setting}`]: text } };
  const { values, problems } = readSettings({ metadata });
  return { hold: setting === 'alerts' ? values.holdOnAlerts : values.holdOnQueries, problem: problems[0] };
}

describe('about alerts', () => {
  it.each<[string, readonly (readonly string[])[]]>([
    ['severity="critical"', [['severity="critical"']]],
    ['{severity="critical", team=~"storage|network"}', [['severity="critical"', 'team=~"storage|network"']]],
    [
      ' severity = "critical" ,\n\n alertname!~"Shale.*"\n',
      [['severity="critical"'], ['alertname!~"Shale.*"']],
    ],
    ['summary!="a, \\"b\\""', [['summary!="a, \\"b\\""']]],
  ])('%j are matchers', (text, questions) => {
    expect(annotated('alerts', text).hold).toEqual({ kind: 'named', questions });
  });

  it.each([
    ['', 'expected it to have >=1 items'],
    ['severity', '"severity": expected matchers'],
    ['severity=critical', 'expected matchers such as severity="critical"'],
    ['severity="critical" team="x"', 'expected matchers'],
    ['a="b", c', '" c": expected matchers'],
    ['{a="b"', 'expected matchers'],
  ])('%j is refused', (text, why) => expect(annotated('alerts', text).problem).toContain(why));
});

describe('about queries', () => {
  it.each<[string, readonly string[]]>([
    ['up == 0', ['up == 0']],
    [
      ' up == 0 \n\nsum by (job) (rate(errors[5m])) > 1\n',
      ['up == 0', 'sum by (job) (rate(errors[5m])) > 1'],
    ],
  ])('%j are queries', (text, questions) => {
    expect(annotated('queries', text).hold).toEqual({ kind: 'named', questions });
  });

  it.each([
    ['', 'expected it to have >=1 items'],
    [' \n ', 'expected it to have >=1 items'],
    [`up == ${'0'.repeat(5000)}`, 'expected it to have <=4096 characters'],
  ])('%j is refused', (text, why) => expect(annotated('queries', text).problem).toContain(why));
});

describe('the URL of a lock service', () => {
  it.each([
    ['https://lock.example.com', 'https://lock.example.com'],
    [' http://10.3.0.15:3333/base/ ', 'http://10.3.0.15:3333/base'],
    ['HTTPS://Lock.example.com//', 'https://lock.example.com'],
  ])('%j is read', (text, url) => {
    expect(readFleetLockUrl(text)).toBe(url);
  });

  it.each(['', 'lock.example.com', 'file:///etc/shadow', 'http://u:secret@lock', 'http://lock/?secret=1'])(
    '%j is refused, and not repeated',
    (text) => {
      expect(() => readFleetLockUrl(text)).toThrow(/^(?!.*secret)/);
    },
  );
});

it.each<[string, boolean]>([
  ['workers', true],
  ['a.b-C9', true],
  ['', false],
  ['a b', false],
  ['a/b', false],
  ['ä', false],
])('whether %j is a group of a lock service: %s', (group, isOne) => {
  expect(FleetLockField.safeParse({ url: 'https://lock', group }).success).toBe(isOne);
});
