import { expect, test } from 'vitest';
import { parseMark } from './mark.ts';

const DEPLOYMENT = `${'a'.repeat(64)}.0`;
const mark = (more: Readonly<Record<string, string>> = {}, said = '') => {
  const fields = {
    deployment: DEPLOYMENT,
    bootID: 'boot-2',
    reason: 'KubeletNeverStarted',
    unit: 'kubelet.service',
    limitSeconds: '900',
    tries: '1',
    at: '2026-01-01T00:00:00Z',
    ...more,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name} ${value}\n`);
  return `${lines.join('')}\n${said}`;
};

test('tells what did not run, and its last lines', () => {
  expect(parseMark(mark({}, 'one\nunknown flag\n'))).toEqual({
    deployment: DEPLOYMENT,
    bootID: 'boot-2',
    reason: 'KubeletNeverStarted',
    why: 'kubelet.service was not running within 900 s of boot, so no daemon could start; the host rolled back by itself: one\nunknown flag',
  });
});

test.each([
  [
    'kubelet.service',
    'no daemon started within 900 s of boot, although kubelet.service was running; the host rolled back by itself',
  ],
  ['', 'no daemon started within 900 s of boot; the host rolled back by itself'],
])('tells of a missing daemon, the kubelet being "%s"', (unit, why) => {
  expect(parseMark(mark({ reason: 'DaemonNeverStarted', unit }))?.why).toBe(why);
});

test('keeps no more of the last lines than helps', () => {
  expect(parseMark(mark({}, `${'x'.repeat(5_000)}end`))?.why).toMatch(/: x{997}end$/);
});

test.each([
  ['nothing', ''],
  ['half of one', `deployment ${DEPLOYMENT}\nbootID boot-2`],
  ['another reason', mark({ reason: 'Bored' })],
  ['no deployment', mark({ deployment: '' })],
  ['what only looks like one further down', `x y\n\n${mark()}`],
])('%s is no mark', (_what, text) => {
  expect(parseMark(text)).toBeUndefined();
});
