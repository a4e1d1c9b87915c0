import { expect, test } from 'vitest';
import { parseMark } from './watchdog-files.ts';

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
    why: 'kubelet.service was not running within 900 s of boot, so no daemon could start; the host rolled back by itself: one; unknown flag',
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

test.each([
  [
    'KubeletNeverStarted',
    'containerd.service was not running within 900 s of boot, so neither kubelet.service nor a daemon could start; the host rolled back by itself: bad config',
  ],
  [
    'DaemonNeverStarted',
    'no daemon started within 900 s of boot, because containerd.service was not running; the host rolled back by itself: bad config',
  ],
])('blames the container runtime that did not run: %s', (reason, why) => {
  expect(parseMark(mark({ reason, runtime: 'containerd.service' }, 'bad config\n'))?.why).toBe(why);
});

test('tells how long of that time the API server was away', () => {
  const longer = { reason: 'DaemonNeverStarted', limitSeconds: '3600', awaySeconds: '3000' };
  expect(parseMark(mark(longer))?.why).toBe(
    'no daemon started within 3600 s of boot, although kubelet.service was running; the API server did not answer for 3000 s of that time; the host rolled back by itself',
  );
});

const tailOf = (log: string) => parseMark(mark({}, log))?.why.split('by itself: ')[1];

test.each([
  ['whole lines', `${'first '.repeat(200)}\n${'second '.repeat(100)}\nlast\n`, /^second .* second; last$/],
  ['whole words of a long line', `first\n${'word '.repeat(1_000)}end`, /^… word .* word end$/],
  ['nothing of one long word', 'x'.repeat(5_000), /^…$/],
])('keeps no more of the last lines than helps: %s', (_what, log, expected) => {
  const tail = tailOf(log);
  expect(tail).toMatch(expected);
  expect(tail?.length).toBeLessThanOrEqual(1_001);
});

const [full, longer] = ['a'.repeat(600), 'b'.repeat(600)];
test.each([
  ['a last line of 1,000 characters', `first\n${'x'.repeat(1_000)}\n`, 'x'.repeat(1_000)],
  [
    'two that have 1,000 with what joins them',
    `${full}\n${'z'.repeat(398)}\n`,
    `${full}; ${'z'.repeat(398)}`,
  ],
  ['no second one that makes it 1,001', `${full}\n${'z'.repeat(399)}\n`, 'z'.repeat(399)],
  ['no earlier one that would fit after one that does not', `one\n${longer}\n${full}\n`, full],
])('keeps whole %s', (_what, log, expected) => {
  expect(tailOf(log)).toBe(expected);
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
