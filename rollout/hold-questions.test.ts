import { expect, it } from 'vitest';
import { parseAlertHold } from './hold-questions.ts';

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
