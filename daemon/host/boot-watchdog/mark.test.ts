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
    why: 'kubelet.service did not run within 900 s of its boot, and so no daemon; the host rolled back by itself: one\nunknown flag',
  });
});

test.each([
  [
    'kubelet.service',
    'no daemon came up within 900 s of its boot, though kubelet.service ran; the host rolled back by itself',
  ],
  ['', 'no daemon came up within 900 s of its boot; the host rolled back by itself'],
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
