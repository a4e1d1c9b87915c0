import { describe, expect, it } from 'vitest';
import { parseAlertHold } from './alerts.ts';
import { parseQueryHold } from './queries.ts';

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
    expect(parseAlertHold(text)).toEqual({ kind: 'named', questions });
  });

  it.each([
    ['', 'it names no alert'],
    ['severity', '"severity": expected matchers'],
    ['severity=critical', 'expected matchers such as severity="critical"'],
    ['severity="critical" team="x"', 'expected matchers'],
    ['a="b", c', '" c": expected matchers'],
    ['{a="b"', 'expected matchers'],
  ])('%j is refused', (text, why) => expect(() => parseAlertHold(text)).toThrow(why));
});

describe('about queries', () => {
  it.each<[string, readonly string[]]>([
    ['up == 0', ['up == 0']],
    [
      ' up == 0 \n\nsum by (job) (rate(errors[5m])) > 1\n',
      ['up == 0', 'sum by (job) (rate(errors[5m])) > 1'],
    ],
  ])('%j are queries', (text, questions) => {
    expect(parseQueryHold(text)).toEqual({ kind: 'named', questions });
  });

  it.each([
    ['', 'it has no query'],
    [' \n ', 'it has no query'],
    [`up == ${'0'.repeat(5000)}`, 'longer than 4096 characters'],
  ])('%j is refused', (text, why) => expect(() => parseQueryHold(text)).toThrow(why));
});
