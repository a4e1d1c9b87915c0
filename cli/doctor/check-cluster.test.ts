import { expect, test } from 'vitest';
import { observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeNodes } from './check-cluster.ts';

const NOW = Date.parse('2026-11-20T11:00:00Z');

test.each([
  [{ enabled: 'true', signing: 'disabled' }, true],
  [{ enabled: 'true', signing: 'required' }, false],
  [{ enabled: 'true' }, false],
  [{ enabled: 'false', signing: 'disabled' }, false],
])('of the switch %j it is %s that images are not signed', (settings, expected) => {
  const data = { imageRepository: 'r.io/os/{pool}', ...settings };
  const switchMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'on-cluster-layering' }, data };
  const findings = judgeNodes({ ...observed({}), switchMap }, NOW);
  expect(findings.some(({ what }) => what.startsWith('images are not signed'))).toBe(expected);
});
